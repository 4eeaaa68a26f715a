/** A text of at most `most` UTF-16 units: what is cut off becomes an ellipsis. No character is cut in half. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

/** As {@link shortened}, with an ellipsis inside: a third of the text before it, for names that differ at their ends. */
export function shortenedInside(text: string, most: number): string {
  const before = Math.floor((most - 1) / 3);
  return text.length <= most
    ? text
    : `${text.slice(0, before).toWellFormed()}…${text.slice(text.length - (most - 1 - before)).toWellFormed()}`;
}
