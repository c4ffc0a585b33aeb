import re

import pytest

from rejoinder.errors import UserError
from rejoinder.recipe import Recipe, in_full, make_system, names, read_parts, read_recipe
from rejoinder.systems.retrieval import Bm25


@pytest.mark.parametrize("name", names())
def test_every_recipe_makes_a_system(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.about
    make_system(recipe)


def test_a_recipe_can_be_a_file(save):
    recipe = read_recipe(str(save("mine.yaml", "about: mine\nsystem: bm25\nsettings: {k1: 7}\n")))
    system = make_system(recipe)
    assert isinstance(system, Bm25)
    assert (recipe.name, system.settings.k1) == ("mine", 7)


def test_a_folder_that_is_called_like_a_recipe_is_not_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bm25").mkdir()
    assert read_recipe("bm25").system == "bm25"
    (tmp_path / "tfidf").write_text("a run")
    assert read_recipe("tfidf").system == "tfidf"


def test_a_mistyped_name_gets_the_nearest(save, complaint):
    with pytest.raises(UserError, match=r"no recipe 'bm52'; did you mean 'bm25'\?"):
        read_recipe("bm52")
    with pytest.raises(UserError, match=r"no recipe 'BM25'; did you mean 'bm25'\?"):
        read_recipe("BM25")
    assert complaint(read_recipe, str(save("a.yaml", "about: a\nsystem: bm2\n"))) == (
        "a.yaml: system: no system 'bm2'; did you mean 'bm25'?"
    )
    assert complaint(read_recipe, str(save("b.yaml", "abuot: a\nsystem: bm25\n"))) == (
        "b.yaml: abuot: no key 'abuot'; did you mean 'about'?"
    )


def test_mistaken_settings_are_named(save, complaint):
    recipe = read_recipe(str(save("c.yaml", "about: a\nsystem: bm25\nsettings: {stme: 1}\n")))
    assert complaint(make_system, recipe) == "c: settings.stme: no key 'stme'; did you mean 'stem'?"
    recipe = Recipe(about="", system="voice", settings={"strength": 1}, name="c")
    assert complaint(make_system, recipe) == "c: settings.strength: no key 'strength'; expected none"
    recipe = read_recipe(str(save("d.yaml", "about: a\nsystem: bm25\nsettings: {k1: one}\n")))
    assert complaint(make_system, recipe) == "d: settings.k1: expected `float`, got `str`"
    stages = "about: a\nsystem: neural-ranker\nsettings: {stages: [{loss: binary}, {negativs: 9}]}\n"
    assert complaint(make_system, read_recipe(str(save("g.yaml", stages)))) == (
        "g: settings.stages[1].negativs: no key 'negativs'; did you mean 'negatives'?"
    )


def test_what_is_no_yaml_is_said_so(save, complaint):
    assert complaint(read_recipe, str(save("e.yaml", "about: [\n"))).startswith("e.yaml: ")
    assert complaint(read_recipe, str(save("f.yaml", "- 1\n"))) == "f.yaml: expected `object`, got `array`"
    assert complaint(read_recipe, str(save("g.yaml", "about: 1\n"))) == "g.yaml: about: expected `str`, got `int`"
    assert complaint(read_recipe, str(save("h.yaml", " "))) == "h.yaml: is empty"


@pytest.mark.parametrize(
    ("system", "settings", "problem"),
    [
        ("kernel-judge", {"power": 0}, ".power: expected `float` > 0.0"),
        ("kernel-judge", {"dialogue_penalty": -1.0}, ".dialogue_penalty: expected `float` > 0.0"),
        ("kernel-judge", {"most": 0}, ".most: expected `int` >= 1"),
        ("neural-judge", {"turns": []}, ".turns: expected `array` of length >= 1"),
        ("neural-judge", {"members": 0}, ".members: expected `int` >= 1"),
        ("neural-judge", {"training": {"batch": 0}}, ".training: batch is 0; expected 1 or more"),
        ("neural-judge", {"training": {"rate": -1.0}}, ".training: rate is -1.0; expected 0 or more"),
        ("neural-judge", {"training": {"warmup": 2.0}}, ".training: warmup is 2.0; expected 0 to 1"),
        ("cascade", {"rankers": ["bm25"]}, ".rankers: expected `object`, got `array`"),
        ("cascade", {"rankers": {20: "bm25"}}, ".rankers: expected `str`, got `int`"),
        ("cascade", {"rankers": {"bm25": 1}}, ": rankers: bm25 is to rank 1; expected 2 or more"),
        (
            "cascade",
            {"rankers": {"bm25": 5, "tfidf": 20}},
            ": rankers: tfidf is to rank 20 of 5; expected no more than those",
        ),
        ("neural-ranker", {"dev_examples": 0}, ": dev_examples is 0; expected 1 or more"),
        ("neural-ranker", {"stages": []}, ": stages are none; expected one or more"),
        (
            "neural-ranker",
            {"stages": [{}, {"network": {"encoder": {"kind": "bag"}}}]},
            ": stage 2 has another encoder than stage 1, which it starts from",
        ),
        (
            "neural-ranker",
            {"stages": [{"hard": 0.5, "negatives": 2}]},
            ": stage 1 has hard negatives; expected a stage before it that finds them",
        ),
        (
            "neural-ranker",
            {"stages": [{}, {"hard": 0.5, "negatives": 1}]},
            ".stages[1]: hard is 0.5 of 1 negatives: none; expected more of either",
        ),
        (
            "neural-ranker",
            {"stages": [{"loss": "binary", "negatives": 5}]},
            ".stages[0]: loss is binary, which takes one wrong reply of the batch; expected no negatives",
        ),
        ("bm25", {"k1": float("inf")}, ": k1 is inf; expected a finite number, 0 or more"),
        ("ensemble", {"members": []}, ": members are none; expected one or more"),
        (
            "neural-ranker",
            {"stages": [{}, {"training": {"optimizer": "adagrad"}}]},
            ".stages[1]: optimizer is adagrad, for tables of vectors alone; expected adamw",
        ),
        ("sentence-encoder", {"longest": 2}, ": longest is 2; expected 3 or more"),
        ("sentence-encoder", {"batch": 0}, ": batch is 0; expected 1 or more"),
        ("neural-ranker", {"stages": [{"hard": 2.0}]}, ".stages[0]: hard is 2.0; expected 0 to 1"),
        (
            "neural-ranker",
            {"stages": [{"loss": "binary", "network": {"match": "esim"}}]},
            ".stages[0]: loss is binary; expected softmax, for esim reads both together",
        ),
        (
            "neural-ranker",
            {"stages": [{"network": {"turns": 0}}]},
            ".stages[0].network: turns is 0; expected 1 or more",
        ),
        (
            "neural-ranker",
            {"stages": [{"network": {"encoder": {"kind": "pretrained"}}}]},
            ": a pretrained encoder needs a path",
        ),
        *(
            (
                "neural-ranker",
                {"stages": [{"network": {"encoder": encoder}}]},
                f".stages[0].network.encoder: {problem}",
            )
            for encoder, problem in (
                ({"hidden": 0}, "hidden is 0; expected 2 or more"),
                ({"dropout": 2.0}, "dropout is 2.0; expected 0 to 1"),
                ({"widths": [1, 2]}, "widths is [1, 2]; expected odd numbers"),
                (
                    {"kind": "transformer", "hidden": 18, "heads": 4},
                    "hidden is 18; expected a multiple of heads, 4",
                ),
            )
        ),
    ],
)
def test_settings_that_nothing_can_be_learned_by(complaint, system, settings, problem):
    pytest.importorskip("torch")
    recipe = Recipe(about="", system=system, settings=settings, name="mine")
    assert complaint(make_system, recipe) == f"mine: settings{problem}"


@pytest.mark.parametrize(
    ("network", "problem"),
    [
        ({"match": "lat"}, "settings.stages[0].network.match: no 'lat' here; did you mean 'late'?"),
        (
            {"match": "x"},
            "settings.stages[0].network.match: no 'x' here; "
            "expected one of bilinear, cross, dot, esim, late, memory, poly",
        ),
    ],
)
def test_a_word_that_is_none_of_those_known(complaint, network, problem):
    pytest.importorskip("torch")
    recipe = Recipe(about="", system="neural-ranker", settings={"stages": [{"network": network}]}, name="mine")
    assert complaint(make_system, recipe) == f"mine: {problem}"


def test_a_recipe_is_not_made_of_itself(save, tmp_path):
    text = "{{about: '', system: judge-ensemble, settings: {{members: [mean, {}]}}}}"
    inner, outer = tmp_path / "inner.yaml", tmp_path / "outer.yaml"
    save("inner.yaml", text.format("bl-uniform"))
    save("outer.yaml", text.format(inner))
    assert [part.name for part in read_parts(read_recipe(str(outer)))] == ["mean", "inner", "mean", "bl-uniform"]
    save("inner.yaml", text.format(outer))
    with pytest.raises(UserError, match="the recipe outer is made of itself"):
        read_parts(read_recipe(str(outer)))


@pytest.mark.parametrize("name", names())
def test_a_recipe_in_full_is_the_same_recipe(save, name):
    pytest.importorskip("torch")
    told = in_full(read_recipe(name))
    again = read_recipe(str(save("again.yaml", told)))
    assert make_system(again).settings == make_system(read_recipe(name)).settings
    assert in_full(again) == told


def test_defaults_are_shown(cli):
    out = cli("recipes")[1]
    places = [
        out.index(line)
        for line in ("To choose replies", "bm25 ", "\n\nFor films", "films-ease", "\n\nTo judge", "mean ")
    ]
    assert places == sorted(places)
    code, out, _ = cli("recipes", "cascade-late")
    assert code == 0
    assert {"encoder: bi-encoder", "found: 200", "late-encoder: 50", "k1: 2.0"} <= {
        line.strip() for line in out.splitlines()
    }
    assert "accumulate: 1" in cli("recipes", "dual-encoder")[1]
    assert cli("recipes", "bm52")[2] == "error: no recipe 'bm52'; did you mean 'bm25'?; see `rejoinder recipes`\n"


def test_a_part_that_is_nowhere_is_named(save, complaint):
    recipe = save("mine.yaml", "about: x\nsystem: ensemble\nsettings: {members: [bm25, dee.model]}\n")
    told = "mine: 'dee.model' is neither a recipe nor, from the folder you are in, a file or a model's folder; see"
    with pytest.raises(UserError, match=re.escape(told)):
        read_parts(read_recipe(str(recipe)))


def test_a_rate_may_be_written_as_people_write_it(save):
    text = "about: a\nsystem: neural-ranker\nsettings: {stages: [{training: {rate: 1e-4}}]}\n"
    assert make_system(read_recipe(str(save("rate.yaml", text)))).settings.stages[0].training.rate == 1e-4


def test_a_mistake_in_a_file_that_is_shown_is_named_by_it(cli, save):
    path = save("mine.yaml", "about: a\nsystem: bm25\nsettings: {stme: 1}\n")
    assert f"{path}: settings.stme: no key 'stme'" in cli("recipes", path)[2]


@pytest.mark.parametrize("name", ["../../escaped", "a\\b", "two\nlines"])
def test_a_name_that_no_file_can_have_is_refused(save, complaint, name):
    path = save("own.yaml", {"about": "", "system": "bm25", "name": name})
    assert complaint(read_recipe, str(path)) == f"own.yaml: name: is {name!r}; expected a name that files can have, too"
