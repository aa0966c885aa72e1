"""The task families of the sample project: every question, its right answer and what checks it.

All sentences were written for Winnow; the capitals are common knowledge. A family holds exactly
140 problems. Left out on purpose are capitals that are disputed or being moved, that are spelt in
several ways, or whose name is part of the question (repeating "Luxembourg" would look right).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

Spec = dict[str, Any]
Problem = tuple[str, str]
"""Question and right answer."""


@dataclass(frozen=True)
class Family:
    """Problems of one kind, and how an answer to one of them is checked."""

    domain: str
    problems: tuple[Problem, ...]
    verifier: Callable[[str], Spec]
    """From the right answer to the verifier of its task."""
    good: Callable[[str], str]
    """From the right answer to a reply that deserves 1."""
    bad: Callable[[str], str]
    """From the right answer to a typical reply that deserves less: right, but not in the asked form."""


def graded(content: Spec, form: Spec) -> Spec:
    """Half for the right answer, half for the asked form; either can be had without the other."""
    return {"kind": "graded", "options": {"content": content, "form": form, "content_weight": 0.5}}


def regex(pattern: str) -> Spec:
    return {"kind": "regex", "options": {"pattern": pattern, "full": True}}


def at_most(characters: int) -> Spec:
    """Form: one line of at most so many characters."""
    return regex(f".{{1,{characters}}}")


ONE_WORD = regex(r"[A-Za-z]+\.?")
CONTAINS: Spec = {"kind": "text", "options": {"mode": "contains"}}


def choice(choices: tuple[str, ...]) -> Spec:
    return {"kind": "choice", "options": {"choices": list(choices)}}


# --- capitals --------------------------------------------------------------------------------------

COUNTRIES = """
Afghanistan: Kabul; Albania: Tirana; Algeria: Algiers; Angola: Luanda; Argentina: Buenos Aires; Armenia: Yerevan;
Australia: Canberra; Austria: Vienna; Azerbaijan: Baku; the Bahamas: Nassau; Bahrain: Manama; Bangladesh: Dhaka;
Barbados: Bridgetown; Belarus: Minsk; Belgium: Brussels; Belize: Belmopan; Bhutan: Thimphu;
Bosnia and Herzegovina: Sarajevo; Botswana: Gaborone; Bulgaria: Sofia; Burkina Faso: Ouagadougou;
Cambodia: Phnom Penh; Canada: Ottawa; Chile: Santiago; China: Beijing; Croatia: Zagreb;
Cuba: Havana; Cyprus: Nicosia; Denmark: Copenhagen; the Dominican Republic: Santo Domingo; Ecuador: Quito;
Egypt: Cairo; Eritrea: Asmara; Estonia: Tallinn; Ethiopia: Addis Ababa; Fiji: Suva; Finland: Helsinki;
France: Paris; Gabon: Libreville; the Gambia: Banjul; Germany: Berlin; Ghana: Accra; Greece: Athens;
Guinea: Conakry; Guyana: Georgetown; Honduras: Tegucigalpa; Hungary: Budapest; India: New Delhi; Iran: Tehran;
Iraq: Baghdad; Ireland: Dublin; Italy: Rome; Jamaica: Kingston; Japan: Tokyo; Jordan: Amman; Kazakhstan: Astana;
Kenya: Nairobi; Laos: Vientiane; Latvia: Riga; Lebanon: Beirut;
Liberia: Monrovia; Libya: Tripoli; Lithuania: Vilnius; Madagascar: Antananarivo;
Malaysia: Kuala Lumpur; Mali: Bamako; Malta: Valletta; Mauritius: Port Louis;
Mexico: Mexico City; Montenegro: Podgorica; Morocco: Rabat; Mozambique: Maputo; Namibia: Windhoek;
Nepal: Kathmandu; the Netherlands: Amsterdam; New Zealand: Wellington; Nicaragua: Managua; Niger: Niamey;
Nigeria: Abuja; North Korea: Pyongyang; North Macedonia: Skopje; Norway: Oslo; Oman: Muscat; Pakistan: Islamabad;
Papua New Guinea: Port Moresby; Peru: Lima; the Philippines: Manila; Poland: Warsaw; Portugal: Lisbon;
Qatar: Doha; Romania: Bucharest; Russia: Moscow; Rwanda: Kigali; Saudi Arabia: Riyadh; Senegal: Dakar;
Serbia: Belgrade; Sierra Leone: Freetown; Slovakia: Bratislava; Slovenia: Ljubljana; Somalia: Mogadishu;
South Korea: Seoul; South Sudan: Juba; Spain: Madrid; Sudan: Khartoum; Suriname: Paramaribo; Sweden: Stockholm;
Syria: Damascus; Tajikistan: Dushanbe; Thailand: Bangkok; Tunisia: Tunis; Turkey: Ankara;
Uganda: Kampala; the United Arab Emirates: Abu Dhabi; the United Kingdom: London; Uruguay: Montevideo;
Uzbekistan: Tashkent; Venezuela: Caracas; Vietnam: Hanoi; Zambia: Lusaka; Zimbabwe: Harare
"""

STATES = """
Alabama: Montgomery; Alaska: Juneau; Arizona: Phoenix; California: Sacramento; Colorado: Denver;
Florida: Tallahassee; Hawaii: Honolulu; Idaho: Boise; Illinois: Springfield; Louisiana: Baton Rouge;
Massachusetts: Boston; Michigan: Lansing; Nebraska: Lincoln; Nevada: Carson City; Ohio: Columbus; Oregon: Salem;
Tennessee: Nashville; Texas: Austin; Virginia: Richmond; Wisconsin: Madison
"""


def pairs(table: str) -> list[tuple[str, str]]:
    """Read "key: value; key: value"."""
    rows = [row.split(":") for row in table.replace("\n", " ").split(";")]
    return [(key.strip(), value.strip()) for key, value in rows]


def capitals() -> Family:
    ask = "What is the capital of {}? Answer in one short sentence."
    return Family(
        "capitals",
        tuple((ask.format(place), city) for place, city in pairs(COUNTRIES) + pairs(STATES)),
        lambda city: graded(CONTAINS, at_most(60)),
        good=lambda city: f"The capital is {city}.",
        bad=lambda city: f"The capital is {city}, which is a large city that many people visit every year.",
    )


# --- sentiment -------------------------------------------------------------------------------------

LABELS = ("positive", "negative")
REVIEWED = (
    "hotel", "film", "soup", "concert", "lamp", "novel", "ferry", "garden tour", "camera", "café",
    "museum", "keyboard", "bakery", "podcast",
)  # fmt: skip
PRAISE = (
    "The {} was a delight from start to finish.",
    "I would come back to this {} any time.",
    "What a wonderful {}, we loved every bit of it.",
    "This {} is far better than I had hoped.",
    "The {} made my whole week, thank you!",
)
BLAME = (
    "The {} was a waste of money.",
    "I regret choosing this {}.",
    "What an awful {}, we wanted to leave at once.",
    "This {} is much worse than I had feared.",
    "The {} ruined our day, never again.",
)


def sentiment() -> Family:
    ask = "Label the review as positive or negative, in one word.\nReview: {}\nLabel:"
    told = [(text, "positive") for text in PRAISE] + [(text, "negative") for text in BLAME]
    return Family(
        "sentiment",
        tuple((ask.format(text.format(what)), label) for (text, label), what in product(told, REVIEWED)),
        lambda label: graded(choice(LABELS), at_most(25)),
        good=lambda label: label.capitalize(),
        bad=lambda label: f"The review is {label}, as the writer says so in every word of it.",
    )


# --- language --------------------------------------------------------------------------------------

# Five openings and four clauses for each language; every opening fits every clause.
LANGUAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "French": (
        ("Le matin", "Aujourd'hui", "Après le travail", "En hiver", "Le dimanche"),
        ("nous buvons du thé.", "ma sœur lit le journal.", "les enfants jouent dehors.", "je prends le train."),
    ),
    "Spanish": (
        ("Por la mañana", "Hoy", "Después del trabajo", "En invierno", "Los domingos"),
        ("bebemos té.", "mi hermana lee el periódico.", "los niños juegan en la calle.", "tomo el tren."),
    ),
    "German": (
        ("Am Morgen", "Heute", "Nach der Arbeit", "Im Winter", "Am Sonntag"),
        (
            "trinken wir Tee.",
            "liest meine Schwester die Zeitung.",
            "spielen die Kinder draußen.",
            "nehme ich den Zug.",
        ),
    ),
    "Italian": (
        ("La mattina", "Oggi", "Dopo il lavoro", "In inverno", "La domenica"),
        (
            "beviamo il tè.",
            "mia sorella legge il giornale.",
            "i bambini giocano fuori.",
            "prendo il treno.",
        ),
    ),
    "Portuguese": (
        ("De manhã", "Hoje", "Depois do trabalho", "No inverno", "Aos domingos"),
        ("bebemos chá.", "a minha irmã lê o jornal.", "as crianças brincam na rua.", "apanho o comboio."),
    ),
    "Dutch": (
        ("'s Ochtends", "Vandaag", "Na het werk", "In de winter", "Op zondag"),
        ("drinken we thee.", "leest mijn zus de krant.", "spelen de kinderen buiten.", "neem ik de trein."),
    ),
    "Swedish": (
        ("På morgonen", "Idag", "Efter jobbet", "På vintern", "På söndagar"),
        ("dricker vi te.", "läser min syster tidningen.", "leker barnen ute.", "tar jag tåget."),
    ),
}  # fmt: skip
NO_COMMA = ("German", "Dutch", "Swedish")
"""Languages that put the verb right after the opening, so that no comma comes between."""


def language() -> Family:
    ask = 'In which language is this sentence written? Answer with the name of the language only.\n"{}"'
    problems = []
    for name, (openings, clauses) in LANGUAGES.items():
        joint = " " if name in NO_COMMA else ", "
        problems += [(ask.format(joint.join(parts)), name) for parts in product(openings, clauses)]
    return Family(
        "language",
        tuple(problems),
        lambda name: graded(choice(tuple(LANGUAGES)), at_most(40)),
        good=str,
        bad=lambda name: f"This sentence is written in {name}, specifically in everyday {name}.",
    )


# --- weekday ---------------------------------------------------------------------------------------

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
EVENTS = (
    "The choir meets on {} in the town hall.",
    "Our next class is on {} at nine.",
    "The new bridge opens on {} after the speeches.",
    "Grandmother's train arrives on {} before noon.",
    "The plumber can only come on {}.",
    "They repaired the lift on {}.",
    "On {} the market moves to the harbour.",
    "The results will be published on {}.",
    "Please return the books by {} evening.",
    "The swimming pool is closed on {}.",
    "Her flight to the coast leaves on {}.",
    "On {} the whole team had lunch together.",
    "The chess club plays its final on {}.",
    "A parcel was delivered on {} morning.",
    "The dentist has a free hour on {}.",
    "The old cinema shows cartoons on {}.",
    "On {} we painted the kitchen.",
    "The mayor will visit the school on {}.",
    "Our neighbours moved in on {}.",
    "The ferry does not sail on {}.",
)


def weekday() -> Family:
    ask = 'Name the weekday in this sentence, with one word.\n"{}"'
    return Family(
        "weekday",
        tuple((ask.format(event.format(day)), day) for event, day in product(EVENTS, DAYS)),
        lambda day: graded(choice(DAYS), ONE_WORD),
        good=str,
        bad=lambda day: f"The weekday in this sentence is {day}.",
    )


# --- number ----------------------------------------------------------------------------------------

COUNTED = (
    "The library bought {} new chairs.",
    "We planted {} apple trees behind the house.",
    "The bus was full, it carried {} passengers.",
    "Her collection holds {} old maps.",
    "The baker sold {} loaves before noon.",
    "There are {} steps up to the tower.",
    "The shelter looks after {} dogs.",
    "The farmer counted {} sheep on the hill.",
    "He wrote {} letters during the winter.",
    "The museum lent out {} paintings.",
    "The ship carries {} containers.",
    "Our street has {} lamps.",
    "They packed {} boxes for the move.",
    "The orchestra needs {} music stands.",
    "A storm broke {} windows at the school.",
    "The village has {} houses.",
    "She baked {} biscuits for the fair.",
    "The hotel offers {} rooms.",
    "The team scored {} points in the final.",
    "The cellar stores {} bottles.",
)
AMOUNTS = tuple(range(13, 97))


def number() -> Family:
    ask = 'Name the number in this sentence, with digits only.\n"{}"'
    chosen = (
        (text, AMOUNTS[(7 * i + 37 * j) % len(AMOUNTS)]) for i, text in enumerate(COUNTED) for j in range(7)
    )
    return Family(
        "number",
        tuple((ask.format(text.format(amount)), str(amount)) for text, amount in chosen),
        lambda amount: graded({"kind": "numeric", "options": {"pick": "only"}}, at_most(35)),
        good=str,
        bad=lambda amount: f"The number {amount} is the number that stands in the given sentence.",
    )


# --- city as JSON ----------------------------------------------------------------------------------

TRAVELS = (
    "Anna flew to {} for a conference.",
    "The exhibition opens in {} next spring.",
    "They spent a rainy weekend in {}.",
    "Our supplier has moved its office to {}.",
    "The night train to {} was two hours late.",
    "He studied music in {} for four years.",
    "The parcel was sent from {}.",
    "We changed planes in {} on the way home.",
    "The marathon runs through {} this year.",
    "My cousin opened a bookshop in {}.",
)
CITIES = (
    "Lisbon", "Oslo", "Toronto", "Nairobi", "Prague", "Lima", "Osaka", "Dublin", "Vienna", "Sydney", "Boston",
    "Madrid", "Cairo", "Hamburg",
)  # fmt: skip
CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def city_json() -> Family:
    ask = 'Name the city in this sentence, as JSON like {{"city": "..."}}.\n"{}"'
    return Family(
        "city_json",
        tuple((ask.format(text.format(city)), city) for text, city in product(TRAVELS, CITIES)),
        lambda city: graded(
            CONTAINS,
            {"kind": "json_schema", "options": {"schema": CITY_SCHEMA}},
        ),
        good=lambda city: json.dumps({"city": city}),
        bad=lambda city: f"The city is {city}.",
    )


FAMILIES: tuple[Callable[[], Family], ...] = (capitals, sentiment, language, weekday, number, city_json)
