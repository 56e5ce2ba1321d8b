"""From a Wikipedia dump or plain text to documents of one sentence a line."""
