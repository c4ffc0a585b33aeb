"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "acts",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_acts")),
    )
    with op.batch_alter_table("acts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_acts_at"), ["at"], unique=False)

    op.create_table(
        "competitions",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("opens", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closes", sa.DateTime(timezone=True), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("quota", sa.Integer(), nullable=False),
        sa.Column("daily", sa.Integer(), nullable=True),
        sa.Column("digits", sa.Integer(), nullable=False),
        sa.Column("ladder", sa.Boolean(), nullable=False),
        sa.Column("log2", sa.Boolean(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("finals", sa.Integer(), nullable=False),
        sa.Column("baselines", sa.JSON(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_competitions")),
        sa.UniqueConstraint("slug", name=op.f("uq_competitions_slug")),
    )
    op.create_table(
        "teams",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("invitation", sa.String(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
        sa.UniqueConstraint("invitation", name=op.f("uq_teams_invitation")),
        sa.UniqueConstraint("key", name=op.f("uq_teams_key")),
    )
    op.create_table(
        "tracks",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("competition_id", sa.String(length=16), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("language", sa.String(), nullable=False),
        sa.Column("subtask", sa.String(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("examples", sa.Integer(), nullable=False),
        sa.Column("online", sa.LargeBinary(), nullable=False),
        sa.Column("measures", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("standings", sa.JSON(), nullable=True),
        sa.Column("final", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["competition_id"], ["competitions.id"], name=op.f("fk_tracks_competition_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tracks")),
        sa.UniqueConstraint("competition_id", "slug", name=op.f("uq_tracks_competition_id_slug")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("password", sa.String(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("team_id", sa.String(length=16), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_users_team_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("key", name=op.f("uq_users_key")),
    )
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_users_team_id"), ["team_id"], unique=False)

    op.create_table(
        "baselines",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("track_id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("online", sa.LargeBinary(), nullable=False),
        sa.Column("whole", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["track_id"], ["tracks.id"], name=op.f("fk_baselines_track_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
    )
    with op.batch_alter_table("baselines", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_baselines_track_id"), ["track_id"], unique=False)

    op.create_table(
        "entries",
        sa.Column("team_id", sa.String(length=16), nullable=False),
        sa.Column("track_id", sa.String(length=16), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("best", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_entries_team_id")),
        sa.ForeignKeyConstraint(["track_id"], ["tracks.id"], name=op.f("fk_entries_track_id")),
        sa.PrimaryKeyConstraint("team_id", "track_id", name=op.f("pk_entries")),
    )
    op.create_table(
        "links",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(length=16), nullable=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_links_user_id")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_links")),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.String(length=16), nullable=False),
        sa.Column("track_id", sa.String(length=16), nullable=False),
        sa.Column("user_id", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("released", sa.JSON(), nullable=False),
        sa.Column("picked", sa.Boolean(), nullable=False),
        sa.Column("lease", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("scored", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name=op.f("fk_submissions_team_id")),
        sa.ForeignKeyConstraint(["track_id"], ["tracks.id"], name=op.f("fk_submissions_track_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_submissions_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("team_id", "track_id", "number", name=op.f("uq_submissions_team_id_track_id_number")),
    )
    with op.batch_alter_table("submissions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_submissions_status"), ["status"], unique=False)
        batch_op.create_index(batch_op.f("ix_submissions_team_id"), ["team_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_submissions_track_id"), ["track_id"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(length=16), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_tokens_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("key", name=op.f("uq_tokens_key")),
    )
    with op.batch_alter_table("tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tokens_user_id"), ["user_id"], unique=False)

    op.create_table(
        "visits",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(length=16), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_visits_user_id")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_visits")),
    )
    with op.batch_alter_table("visits", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_visits_user_id"), ["user_id"], unique=False)

    op.create_table(
        "submission_scores",
        sa.Column("submission_id", sa.String(length=16), nullable=False),
        sa.Column("online", sa.LargeBinary(), nullable=False),
        sa.Column("whole", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name=op.f("fk_submission_scores_submission_id")),
        sa.PrimaryKeyConstraint("submission_id", name=op.f("pk_submission_scores")),
    )
