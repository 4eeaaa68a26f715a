/** A text of at most `most` UTF-16 units: what is cut off becomes an ellipsis. No character is cut in half. */
export function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}
