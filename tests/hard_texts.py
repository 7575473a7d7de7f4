"""Texts that tokenizers cut differently if they are not the same: our own sentences, each with a difficulty in it."""

from __future__ import annotations

HARD_TEXTS = (
    # Latin: ligatures, accents, typographic signs
    "The oﬃce ﬁles a ﬂat in a ﬁne ﬀoulard",
    "Ça va, mon cœur ? Où étais-tu à Noël ?",
    "İstanbul'da ılık bir gün, ŞEKER gibi",
    "Größe, STRASSE, Straße, ẞ und ß",
    "Ngày mai tôi sẽ rất vui vẻ ở Đà Nẵng",
    "Žluťoučký kůň; ǆ ǅ Ǆ ĳ ŉ ſ",
    "Ẹ káàárọ̀, ọ̀rẹ́ mi dáadáa",
    "“Quoted” ‘twice’ — dash – minus − hyphen‐ … ‼ ⁇",
    "so happyyyyyy!!!!!! :-) ;D <3 #blessed @user https://example.org/a?b=c&d=1",
    "don't DON'T dOn'T",
    "anticonstitutionnellement Donaudampfschifffahrtsgesellschaft",
    # digits and signs
    "２０２６年１０月 ① ② ⑳ ½ ⅓ ¼ x² H₂O 10℃ 5㎏ №7 ™ © ® ª º",
    "1,234.56 ٣٤٥ १२३ ৪৫৬ ๑๒๓ ፩፪",
    "𝓗𝓮𝓵𝓵𝓸 𝐰𝐨𝐫𝐥𝐝 ⓗⓔⓛⓛⓞ ʰᵉˡˡᵒ",
    "\u2126 Ω \u212b Å \u212a K µ μ",
    # emoji
    "👨\u200d👩\u200d👧\u200d👦 our family 👩🏽\u200d🚀 flies 🏳\ufe0f\u200d🌈 🇪🇸🇪🇹 ❤\ufe0f\u200d🔥 1\ufe0f⃣ ☺\ufe0f ☺",
    "🙂🙂🙂",
    "no🙂space🙃at😂all",
    # white space and what is not seen
    "non\u00a0breaking\u202fspaces\u2009thin\u3000wide",
    "  leading,   several   and trailing  ",
    "tabs\tand\nnew\r\nlines\x0b\x0c",
    "soft\u00adhyphen and zero\u200bwidth\u200cspaces\u2060here",
    "\ufeffa mark at the beginning",
    "\u202eright to left\u202c and \u200eleft\u200f to right",
    "bell\x07 null-like \x01\x02 delete\x7f escape\x1b[0m",
    "line\u2028and paragraph\u2029separators \ufffd",
    "▁ a mark of word beginnings in the text ▁▁itself",
    " ",
    "",
    # Greek and Cyrillic
    "Ὁ βίος βραχύς, ἡ δὲ τέχνη μακρά· ΣΊΣΥΦΟΣ",
    "Ёжик в тумане ищет друга; їжак, ґанок, ў",
    "ђак и његова љубав; ѳита и ѣсть",
    # Armenian, Georgian
    "Ես քեզ շատ եմ սիրում, և դու գիտես։ ﬓ",
    "მე ძალიან ბედნიერი ვარ დღეს; ᲓᲦᲔᲡ ႣႶႤႱ",
    # Hebrew with points, in canonical order and as presentation forms
    "שָׁלוֹם עֲלֵיכֶם, יְלָדִים",
    "\ufb2aלום \ufb21 \ufb24 \ufb4f",
    # Arabic with harakat, tatweel, ligatures and presentation forms; Persian, Urdu
    "العَرَبِيَّةُ لُغَةٌ جَمِيلَةٌ جِدًّا",
    "جمـــيـــل جدااااا ﷺ ﷲ لا ﻻ ﻣﺮﺣﺒﺎ",
    "می\u200cخواهم کتاب\u200cهایم را ببینم",
    "میں آج بہت خوش ہوں۔ ہے ۓ",
    # Indic, with joiners and with letters that Unicode composes in two ways
    "मैं बहुत ख़ुश हूँ। \u0958लम ज़रूर फ़िल्म क्\u200dष र्\u200dय",
    "আমি খুব খুশি। \u09dcা\u09ddা য়ে ক্\u200dষ ৎ",
    "நான் மிகவும் மகிழ்ச்சியாக இருக்கிறேன் ஸ்ரீ கொடு",
    "నేను చాలా సంతోషంగా ఉన్నాను క్ష్మి",
    "ನಾನು ತುಂಬಾ ಖುಷಿಯಾಗಿದ್ದೇನೆ ಕೊಡು ಕ್\u200cಷ",
    "എനിക്ക് വളരെ സന്തോഷമുണ്ട് അവന്\u200d അവൻ ൻ്റെ",
    "હું ખૂબ ખુશ છું ક્ષમા જ્ઞાન",
    "ਮੈਂ ਬਹੁਤ ਖ਼ੁਸ਼ ਹਾਂ ਸ਼ੇਰ ਜ਼ਮੀਨ",
    "ମୁଁ ବହୁତ ଖୁସି ଅଛି ଡ଼ାଢ଼ା କ୍ଷ",
    "මට ගොඩක් සතුටුයි ශ්\u200dරී ලංකාව ක්\u200dෂ",
    # South-East Asia and Tibet, where words are not parted
    "วันนี้ฉันดื่มน้ำเย็นมากแล้วทำงานต่อ ฯลฯ ๆ",
    "ມື້ນີ້ຂ້ອຍດີໃຈຫຼາຍ ນ້ຳ ໝາ ໜ້າ",
    "ថ្ងៃនេះខ្ញុំសប្បាយចិត្តណាស់ ស្ត្រី",
    "ဒီနေ့ ကျွန်တော် အရမ်းပျော်တယ် မင်္ဂလာပါ",
    "དེ་རིང་ང་དགའ་པོ་འདུག",
    # Ethiopic
    "ዛሬ በጣም ደስ ብሎኛል፤ እናመሰግናለን።",
    # Chinese, Japanese, Korean
    "我今天很高兴，因为下雨了！「真的」嗎？ 龍 龙 \uf9c4 \uf900 \uf901",
    "ｱｲｳｴｵ ﾗﾒﾝ ー ｰ ㌔ ㍿ ㊗ 〜 ～ ・",
    "東京は夜の七時、雨です。ヴァイオリン",
    "오늘 정말 행복해요 ㅋㅋㅋ ㅠㅠ ﾡ 뷁",
    # what the vocabulary lacks
    "ᎣᏏᏲ ᏙᎯᏧ in Cherokee",
    "ᓄᓇᕗᑦ ⵜⴰⵎⴰⵣⵉⵖⵜ ߒߞߏ 𐌰𐌱𐌲 𓀀",
)

# Given in a form that Unicode calls equal to another: both are read the same.
COMPOSED = (
    ("cafe\u0301 e\u0301te\u0301", "café été"),
    ("A\u030angstro\u0308m", "Ångström"),
    ("Tie\u0302\u0301ng Vie\u0323\u0302t", "Tiếng Việt"),
    ("и\u0306 е\u0308", "й ё"),
    ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
    ("か\u3099き\u3099は\u309a", "がぎぱ"),
    ("ｶﾞｷﾞﾊﾟ", "ガギパ"),
    ("ا\u0653 و\u0654", "آ ؤ"),
    ("\u0958\u095b", "\u0915\u093c\u091c\u093c"),
    ("\u0995\u09c7\u09be", "\u0995\u09cb"),
    ("\u0b95\u0bc6\u0bbe", "\u0b95\u0bca"),
    ("α\u0301 ω\u0313", "ά ὠ"),
)
