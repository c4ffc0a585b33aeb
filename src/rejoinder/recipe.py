"""Recipes: one small YAML file per system, that names a kind of system and its settings.

    about: BM25 (Lucene's variant) with the whole context as the query
    system: bm25
    settings: {recency: 0.8}

`rejoinder recipes` lists those that come with the package; the path of a file of your own works wherever a name does.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import UserError
from rejoinder.files import BadInputError
from rejoinder.records import invalid, read_yaml
from rejoinder.systems.system import SYSTEMS, AnySystem, find_system

CARD = "model.yaml"
"""What tells a trained model's folder from others."""


class Recipe(msgspec.Struct, frozen=True):
    """How to make a system."""

    about: str
    system: str
    settings: dict[str, object] = {}
    name: str = ""


def names() -> list[str]:
    """Return the recipes that come with the package."""
    found = files("rejoinder").joinpath("recipes").iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in found if entry.name.endswith(".yaml"))


def read_recipe(source: str) -> Recipe:
    """Read a recipe by its name, or a file; a file that is called like a recipe is `./NAME`."""
    path = Path(source)
    if source in names():
        path = Path(str(files("rejoinder").joinpath("recipes", f"{source}.yaml")))
    elif not _is_file(source):
        raise UserError(f"no recipe {source!r}{_nearest(source, names())}; see `rejoinder recipes`")
    _check_keys(path, read_yaml(path, dict[str, object]), Recipe, ())
    recipe = read_yaml(path, Recipe)
    _check_system(path, recipe)
    if not recipe.name.isprintable() or {"/", "\\"} & {*recipe.name}:
        raise BadInputError(path, f"is {recipe.name!r}; expected a name that files can have, too", field="name")
    return msgspec.structs.replace(recipe, name=recipe.name or path.stem)


def _is_file(source: str) -> bool:
    return Path(source).suffix in (".yaml", ".yml") or Path(source).is_file()


def make_system(recipe: Recipe, source: Path | None = None) -> AnySystem:
    """Make a system that has learned nothing yet."""
    path = source or Path(recipe.name)
    _check_system(path, recipe)
    class_ = find_system(recipe.system)
    _check_keys(path, recipe.settings, class_.Settings, ("settings",))
    try:
        # YAML takes 1e-4 for a text
        settings: object = msgspec.convert(recipe.settings, class_.Settings, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(path, None, error, "settings") from None
    return class_(settings)


def in_full(recipe: Recipe, source: Path | None = None) -> str:
    """Return a recipe as YAML that names every setting of its system."""
    settings = _with_defaults(make_system(recipe, source).settings)
    return msgspec.yaml.encode({"about": recipe.about, "system": recipe.system, "settings": settings}).decode()


def _with_defaults(value: Any) -> Any:
    """Turn settings into plain data; msgspec leaves out what a dataclass was not given."""
    if isinstance(value, tuple):
        return [_with_defaults(part) for part in value]
    fields = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", None)
    return {name: _with_defaults(getattr(value, name)) for name in fields} if fields else value


def read_parts(recipe: Recipe, above: tuple[Recipe, ...] = ()) -> list[Recipe]:
    """Return the recipes that a recipe is made of or taught by, and theirs; models that are trained are none."""
    if recipe in above:
        raise UserError(f"the recipe {recipe.name} is made of itself")
    system = make_system(recipe)
    sources = (*system.part_sources(), *filter(None, [system.teacher_source()]))
    parts = [_read_part(recipe, source) for source in sources if not is_model(source)]
    return [*parts, *(deeper for part in parts for deeper in read_parts(part, (*above, recipe)))]


def _read_part(recipe: Recipe, source: str) -> Recipe:
    if source not in names() and not Path(source).is_file():
        known = _nearest(source, names()) or "; see `rejoinder recipes`"
        problem = f"{source!r} is neither a recipe nor, from the folder you are in, a file or a model's folder"
        raise UserError(f"{recipe.name}: {problem}{known}")
    return read_recipe(source)


def is_model(source: str) -> bool:
    """Whether this is the folder of a trained model; a recipe's name is that, whatever lies here (but not `./NAME`)."""
    return source not in names() and (Path(source) / CARD).is_file()


def _check_system(path: Path, recipe: Recipe) -> None:
    if recipe.system not in SYSTEMS:
        raise BadInputError(path, f"no system {recipe.system!r}{_nearest(recipe.system, SYSTEMS)}", field="system")


def _check_keys(path: Path, given: object, type_: object, place: tuple[str, ...]) -> None:
    """Refuse a key, or a word, that the type has not, and say which one may have been meant."""
    known = msgspec.inspect.type_info(type_) if not isinstance(type_, msgspec.inspect.Type) else type_
    if isinstance(known, msgspec.inspect.UnionType):
        named = (
            part for part in known.types if hasattr(part, "fields") or isinstance(part, msgspec.inspect.LiteralType)
        )
        known = next(named, known)
    if isinstance(known, msgspec.inspect.LiteralType) and isinstance(given, str) and given not in known.values:
        raise BadInputError(path, f"no {given!r} here{_instead(given, map(str, known.values))}", field=".".join(place))
    if isinstance(given, list) and isinstance(known, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
        for number, item in enumerate(given):
            _check_keys(path, item, known.item_type, (*place[:-1], f"{place[-1]}[{number}]"))
    if not isinstance(given, dict) or not isinstance(known, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        return
    fields = {field.encode_name: field.type for field in known.fields}
    for key, value in given.items():
        if key not in fields:
            raise BadInputError(path, f"no key {key!r}{_instead(str(key), fields)}", field=".".join((*place, str(key))))
        _check_keys(path, value, fields[key], (*place, str(key)))


def _instead(word: str, known: Iterable[str]) -> str:
    words = list(known)
    return _nearest(word, words) or (f"; expected one of {', '.join(words)}" if words else "; expected none")


def _nearest(word: str, known: Iterable[str]) -> str:
    known = list(known)
    found = [one for one in known if one.lower() == word.lower()] or get_close_matches(word, known, 1)
    return f"; did you mean {found[0]!r}?" if found else ""
