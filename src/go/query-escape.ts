/** Percent-encodes all but RFC 3986's unreserved characters; spaces become plus signs (`url.QueryEscape`). */
export function queryEscape(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
