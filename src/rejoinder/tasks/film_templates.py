"""How generated users put things. The wording follows the examples in Dodge et al. (2016), tables 1 to 3, and the
forms seen in the official development files; patterns of questions are rather learned (`film_questions`)."""

LIKING = ("like", "liked", "really like", "really liked", "love", "loved")
STATEMENTS = (
    *(f"I {verb} {{films}}." for verb in LIKING),
    *(f"{{films}} are {noun} I {verb}." for noun in ("films", "movies") for verb in LIKING),
    "I watched the films {films} and loved them.",
    "Some movies I like are {films}.",
)
"""What somebody likes; task 2 and the first exchange of task 3."""

REQUESTS = tuple(
    f"{modal} you {verb} {thing}?"
    for modal in ("Can", "Would")
    for verb in ("suggest", "recommend")
    for thing in ("a film", "a movie", "something to watch", "something I might like")
)

WISH = "I'm looking for {article} {matter} movie."
"""A genre, a tag or a person that the suggestion is to have; task 3."""

FACTOIDS = {
    "directed_by": ("Who is that directed by?",) * 6 + ("Who directed that?",),
    "starred_actors": ("Who does that star?",) * 6 + ("Who stars in that?",),
    "has_tags": ("What else is that about?",),
}
"""Questions about a suggestion; the forms of the official files are the usual ones."""

ALTERNATIVES = (
    "I like {matter} movies more. Do you know anything else?",
    "I prefer {matter} movies. Can you suggest an alternative?",
    "I rate {matter} movies. Any other suggestions?",
)

QUESTIONS: dict[str, tuple[str, ...]] = {
    "actor to movie": (
        "what movies did [] star in",
        "which films did [] act in",
        "[] appears in which movies",
        "what films was [] in",
        "what is a film that stars []",
    ),
    "movie to actors": (
        "who starred in []",
        "who acted in the movie []",
        "which actors are in []",
        "the film [] starred who",
        "who appears in []",
    ),
    "movie to director": (
        "who directed the film []",
        "who was the director of []",
        "who is the director of the movie []",
        "which person directed []",
    ),
    "director to movie": (
        "can you name a film directed by []",
        "what movies did [] direct",
        "which films has [] directed",
        "what is [] the director of",
    ),
    "movie to writer": (
        "who wrote the movie []",
        "who was the writer of []",
        "who wrote the screenplay of []",
        "which person wrote []",
    ),
    "writer to movie": (
        "what films did [] write",
        "which movies were written by []",
        "what is [] the writer of",
        "can you name a film written by []",
    ),
    "movie to tags": (
        "what is [] about",
        "which words describe []",
        "what topics does the film [] deal with",
        "how would people describe the movie []",
    ),
    "tag to movie": (
        "what movies are about []",
        "which films are described by []",
        "can you name a film about []",
        "what films can be described by []",
    ),
    "movie to year": (
        "when was [] released",
        "what year was the movie [] released",
        "in what year did [] come out",
        "what is the release date of []",
    ),
    "movie to genre": (
        "what is the genre of the film []",
        "what kind of movie is []",
        "what type of film is []",
        "what genre is [] in",
    ),
    "movie to language": (
        "what language is [] in",
        "which language is spoken in []",
        "what is the main language of the movie []",
    ),
}
"""Patterns for where no annotated questions are given; the entity goes between the brackets."""
