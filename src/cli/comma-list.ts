/** The items of a flag's value that are separated by commas. */
export function commaList(text: string): readonly string[] {
  return text.split(',').filter((item) => item !== '');
}
