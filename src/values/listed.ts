/**
 * The first texts of a list, and the number of the others: `a, b and 3 more`, or `a; b; and 3 more` for texts that have
 * commas themselves.
 * @param total the length of the list, of which `texts` may be the beginning
 */
export function listed(
  texts: readonly string[],
  most: number,
  separator: ', ' | '; ' = ', ',
  total = texts.length,
): string {
  const shown = texts.slice(0, most);
  const more = total - shown.length;
  const rest = more > 0 ? `${separator === ', ' ? ' ' : separator}and ${more} more` : '';
  return `${shown.join(separator)}${rest}`;
}
