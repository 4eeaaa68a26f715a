/**
 * Characters that control a terminal, the C1 controls (which some take for ANSI escapes) included, and those that change the
 * direction of the text around them (UAX #9). Line breaks and tabs are not among them.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

/** Untrusted text that cannot control a terminal. Line breaks and tabs stay. */
export function withoutControls(text: string): string {
  return text.replaceAll(CONTROLS, '');
}

/** The same text with a sign (U+FFFD) in the place of each such character. */
export function inertText(text: string): string {
  return text.replaceAll(CONTROLS, '\u{fffd}');
}

/** The same with escapes as in JSON, so that JSON text has the same value. */
export function escapedControls(text: string): string {
  return text.replaceAll(CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
