// The usual names of a column with texts, in lower case; data/columns.py has the same.

export const TEXT_COLUMNS = [
  "text", "tweet", "sentence", "content", "comment", "message", "body", "post", "review",
  "kommentar", "kommentare", "nachricht", "beitrag",
  "texto", "mensaje", "comentario", "tuit", "reseña",
  "mensagem", "comentário",
  "texte", "avis", "commentaire",
  "testo", "messaggio", "commento", "recensione",
  "tekst", "bericht", "reactie", "opmerking",
  "meddelande", "melding", "besked", "teksti", "viesti", "kommentti",
  "wiadomość", "komentarz", "komentář", "zpráva", "szöveg", "üzenet", "hozzászólás", "mesaj", "comentariu",
  "metin", "yorum", "ileti",
  "teks", "pesan", "komentar", "ulasan", "ujumbe", "maoni",
  "κείμενο", "μήνυμα", "σχόλιο",
  "текст", "сообщение", "комментарий", "отзыв", "повідомлення", "коментар", "відгук",
  "نص", "النص", "تعليق", "التعليق", "رسالة", "متن", "پیام", "טקסט", "תגובה",
  "टेक्स्ट", "पाठ", "टिप्पणी", "ข้อความ",
  "文本", "内容", "评论", "正文", "留言", "內容", "評論",
  "テキスト", "本文", "コメント", "投稿", "텍스트", "내용", "댓글", "리뷰",
];
