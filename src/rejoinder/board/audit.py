"""The audit log: who did what, when; written in the same transaction as the act itself."""

from sqlalchemy.orm import Session

from rejoinder.board.models import Act, User


def note(session: Session, who: User | str, what: str, subject: str, **detail: object) -> None:
    """Add an administrative act."""
    session.add(Act(who=who if isinstance(who, str) else who.name, what=what, subject=subject, detail=detail))
