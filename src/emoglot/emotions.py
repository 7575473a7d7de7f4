"""The eleven emotions: definitions, examples and near misses in three languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Emotion:
    """A label with its definition, texts that carry it, and similar texts that do not."""

    name: str
    definition: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]


EMOTIONS = (
    Emotion(
        "anger",
        "Annoyance, indignation or rage at somebody or something that is seen as wrong or in the way.",
        ("They lied to me again, I'm furious!", "¡Estoy harto de que me mientan!", "Ich bin so wütend auf ihn!"),
        ("I'm not angry with you.", "Ayer hubo una pelea en el bar.", "Das Wort „Wut“ hat drei Buchstaben."),
    ),
    Emotion(
        "anticipation",
        "Looking forward to something, or waiting for it with tension; good or bad.",
        ("Only two days until the trip, I can't wait!", "¡Ya quiero que sea viernes!", "Ich kann es kaum erwarten!"),
        ("When does the shop open?", "La reunión es mañana a las diez.", "Der Zug kommt um acht an."),
    ),
    Emotion(
        "disgust",
        "Revulsion at something foul, or contempt for what somebody did.",
        ("Yuck, there is a hair in my soup.", "Qué asco, la leche está podrida.", "Igitt, das stinkt ja ekelhaft!"),
        ("I don't like spinach that much.", "La basura se recoge los lunes.", "Der Käse riecht kräftig."),
    ),
    Emotion(
        "fear",
        "Worry, anxiety or terror in the face of a threat, real or imagined.",
        ("I'm terrified of losing my job.", "Tengo mucho miedo de la oscuridad.", "Ich habe Angst vor Hunden."),
        ("I'm not afraid of the dark.", "No tengo miedo.", "Ich fürchte, wir sind ausverkauft."),
    ),
    Emotion(
        "joy",
        "Happiness, delight, amusement or relief.",
        ("We won, this is the best day ever!", "¡Qué alegría verte!", "Ich bin so glücklich heute!"),
        ("I'm not happy about this.", "Feliz es un adjetivo.", "Danke, das Paket ist angekommen."),
    ),
    Emotion(
        "love",
        "Affection, tenderness or devotion for a person, an animal or a thing.",
        ("I love you more than anything.", "Te quiero muchísimo, mamá.", "Ich liebe meine kleine Schwester."),
        ("I'd love a coffee, please.", "Quiero dos entradas.", "Wir hatten einander nie geliebt."),
    ),
    Emotion(
        "optimism",
        "Hope, and confidence that things will turn out well.",
        (
            "Things will get better, I just know it.",
            "¡Sí se puede, todo saldrá bien!",
            "Ich bin sicher, alles wird gut.",
        ),
        ("It may rain tomorrow.", "Espero el autobús.", "Hoffentlich nicht."),
    ),
    Emotion(
        "pessimism",
        "Hopelessness, and the belief that things will turn out badly.",
        (
            "It's no use, nothing will ever change.",
            "Todo va a salir mal, como siempre.",
            "Es hat doch alles keinen Sinn.",
        ),
        ("The glass is half empty.", "Mañana bajan las temperaturas.", "Das Experiment ist gescheitert."),
    ),
    Emotion(
        "sadness",
        "Grief, loneliness, disappointment or low spirits.",
        ("I miss her so much, I cried all night.", "Estoy muy triste desde que te fuiste.", "Ich bin so traurig."),
        ("I'm not sad, just tired.", "La película dura dos horas.", "Je länger, desto besser."),
    ),
    Emotion(
        "surprise",
        "Amazement at something unexpected; good or bad.",
        ("Wow, I did not see that coming!", "¡No me lo puedo creer!", "Damit hätte ich nie gerechnet!"),
        ("It didn't surprise anyone.", "Era de esperar.", "Das war nicht anders zu erwarten."),
    ),
    Emotion(
        "trust",
        "Confidence in somebody, acceptance, admiration.",
        ("I'd put my life in her hands.", "Confío plenamente en mi equipo.", "Auf ihn kann ich mich immer verlassen."),
        ("I don't trust that man.", "La cuenta requiere una contraseña.", "Er hat ein Konto bei der Bank."),
    ),
)
