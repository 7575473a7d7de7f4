// Example sentences.

export const EXAMPLES = [
  { language: "en", name: "English", text: "I can't believe it, we won! I'm so happy for all of you." },
  { language: "es", name: "Español", text: "Me da mucha rabia que siempre me mientas a la cara." },
  { language: "ar", name: "العربية", text: "أنا خائف جدا من الغد، قلبي يرتجف." },
  { language: "zh", name: "中文", text: "外婆走了以后，我每天都很难过。" },
  { language: "ru", name: "Русский", text: "Какая мерзость, этот суп просто отвратителен!" },
  { language: "ja", name: "日本語", text: "うわ、びっくりした！まさか君が来るなんて！" },
  { language: "he", name: "עברית", text: "אני כל כך אוהב אותך, סבתא." },
  { language: "el", name: "Ελληνικά", text: "Το περιμένω με ανυπομονησία, μετράω τις μέρες!" },
];
