"""Replace what looks like personal data in a text by a word for its kind: `[email]`, `[phone]`, `[card]`, ...

Patterns find what has a form: addresses, numbers, names after a title. They do not find a name or an address in running
text; the result still has to be treated with care.
"""

import ipaddress
import re
from collections.abc import Callable

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_URL = re.compile(r"(?P<host>(?:https?://|www\.)[^\s/?#<>\"'()]+)(?P<rest>[/?#][^\s<>\"'，。）)]*)?", re.IGNORECASE)
_TOKEN = re.compile(r"[?#&=]|[^/]{20,}|[^/]*\d[^/]{8,}")
_IP = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7})(?![\w:])(?!\.\d)", re.I)
_MAC = re.compile(r"(?<![\w:-])[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?![\w:-])", re.IGNORECASE)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_CHINESE_ID = re.compile(r"(?<!\d)\d{6}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\dA-Za-z])")
_DIGITS = re.compile(r"(?<![\w.])(?:\d[ -]?){12,18}\d(?!\w)", re.ASCII)
_PHONE = re.compile(
    r"(?<![\w.+-])(?:"
    r"\+(?=(?:[ .()-]{0,2}\d){8,15})\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}"  # +44 20 7946 0958
    r"|\(0?\d{2,4}\)[ .-]?\d{3,4}[ .-]?\d{4}"  # (020) 7946 0958
    r"|(?<!\d[ /])0(?!00)\d{1,4}(?:[ .-]\d{3,8}){1,3}"  # 020 7946 0958, 010-62345678; not in 20 01 2013, 10 000 000
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"  # 212-555-0123
    r"|[48]00[ -]?\d{3}[ -]?\d{4}"  # 400-810-0000
    r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4}"  # Chinese mobile numbers
    r")(?![\d-])",
    re.ASCII,
)
_NUMBER = re.compile(r"(?<![\w.])\d{8,}(?![\w.]*\d)", re.ASCII)
_GROUPS = re.compile(
    r"(?<![\w.,:/])(?:"
    r"\d{2,}(?P<mark>[ -])\d{2,}(?:(?P=mark)\d{2,}){0,9}"  # 1234 5678, 12-345-678
    r"|(?!(?:19|20)\d\d\.\d{1,3}\.)(?=[\d.]*\d{4})\d{3,}(?:\.\d{3,}){1,9}\.\d{2,}"  # 1234.5678.9012; not 2021.003.20155
    r")(?!\w|[.,:/-]\d)",
    re.ASCII,
)
_CURRENCY = r"(?:[$€£¥元]|(?:EUR|USD|GBP|CNY|RMB|euros?|dollars?|pounds?|yuan)\b)"
_PRICE_BEFORE = re.compile(_CURRENCY + r" ?\Z", re.IGNORECASE)
_PRICE_AFTER = re.compile(" ?" + _CURRENCY, re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_LEAST_DIGITS = 8
_NAME = re.compile(
    r"(?P<before>\b(?:[Mm]y name is|(?:Mr|Mrs|Ms|Miss|Dr|Prof)\.?)\s+)[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+){0,2}"
    r"|(?P<greeting>\b(?:Dear|DEAR)\s+)(?!(?:Sir|Madam|Customer|User|Friend|All|Team|Client|Valued|Support|Mr|Mrs|Ms|Dr)\b)"
    r"[A-Z][a-z'-]+(?:\s+[A-Z][a-z'-]+)?(?=\s*[,!:.\n])"
)


def mask(text: str) -> str:
    """Return the text with what looks like personal data replaced."""
    text = _URL.sub(_mask_url, _EMAIL.sub("[email]", text))
    text = _MAC.sub("[mac]", _IP.sub(_mask_ip, text))
    text = _IBAN.sub(_checked("[account]", _is_iban), _CHINESE_ID.sub("[id]", text))
    text = _DIGITS.sub(_checked("[card]", _is_card), text)
    text = _NUMBER.sub("[number]", _PHONE.sub("[phone]", text))
    text = _GROUPS.sub(_mask_groups, text)
    return _NAME.sub(lambda found: f"{found['before'] or found['greeting']}[name]", text)


def _mask_url(found: re.Match[str]) -> str:
    """Keep the host, and a path that looks like words; a query or a long part of a path may be a key."""
    rest = found["rest"] or ""
    return (
        f"{found['host']}/[masked]" if any(_TOKEN.match(part) for part in re.split(r"/|(?=[?#])", rest)) else found[0]
    )


def _mask_ip(found: re.Match[str]) -> str:
    try:
        ipaddress.ip_address(found[0])
    except ValueError:
        return found[0]
    return "[ip]"


def _mask_groups(found: re.Match[str]) -> str:
    """Mask a number in groups unless it is a date, years, a price, or a range of round numbers."""
    groups = re.split("[ .-]", found[0])
    few = sum(map(len, groups)) < _LEAST_DIGITS
    years = all(map(_YEAR.fullmatch, groups))
    round_ = all(group.endswith("00") for group in groups[1:])
    return found[0] if few or years or round_ or _is_date(groups) or _is_price(found) else "[number]"


def _is_date(groups: list[str]) -> bool:
    """Whether the first three groups are a day, a month and a year, and all others could be a time."""
    if [len(group) for group in groups[3:]] != [2] * len(groups[3:]):
        return False
    year, *rest = groups[:3] if len(groups[0]) == 4 else groups[2::-1]
    days = sorted(map(int, rest))
    return bool(_YEAR.fullmatch(year)) and len(days) == 2 and 1 <= days[0] <= 12 and days[1] <= 31


def _is_price(found: re.Match[str]) -> bool:
    near = found.string[max(found.start() - 8, 0) : found.start()]
    return bool(_PRICE_BEFORE.search(near) or _PRICE_AFTER.match(found.string, found.end()))


def _checked(word: str, is_one: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    return lambda found: word if is_one(found[0]) else found[0]


def _is_card(text: str) -> bool:
    """Whether digits pass Luhn's check, which all payment cards do."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether an international account number has the remainder 1 that ISO 13616 asks for."""
    plain = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1
