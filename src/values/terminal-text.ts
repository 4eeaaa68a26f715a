import { randomInt } from 'node:crypto';
import { styleText } from 'node:util';

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

/** A value of JSON whose texts are inert: a status, of which tenants can write parts. */
export function inertTexts<T>(value: T): T {
  return replacedTexts(value) as T;
}

function replacedTexts(value: unknown): unknown {
  if (typeof value === 'string') {
    return inertText(value);
  }
  if (Array.isArray(value)) {
    return value.map(replacedTexts);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replacedTexts(item)]))
    : value;
}

/** The same with escapes as in JSON, so that JSON text has the same value. */
export function escapedControls(text: string): string {
  return text.replaceAll(CONTROLS, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Parameters that mark a control sequence as our own. Random, so that no text from outside can have them; of four digits at most,
 * so that functions which measure or remove sequences know them.
 */
const MARK = Array.from({ length: 3 }, () => randomInt(1_000, 10_000)).join(';');
const OWN = String.raw`\u001B\[(?<parameters>[\d;]*?);${MARK}(?<final>[A-Za-z])`;
/** Sequences of colours and fonts. */
const SGR = new RegExp(String.raw`\u001B\[[\d;]*m`, 'g');
const OWN_OR_CONTROL = new RegExp(`${OWN}|${CONTROLS.source}`, 'gu');

/** A control sequence (`ESC [`, parameters, a letter) that {@link terminalOutput} lets pass. */
export function ownSequence(sequence: string): string {
  return `${sequence.slice(0, -1)};${MARK}${sequence.slice(-1)}`;
}

/** `styleText` of Node, whose colours {@link terminalOutput} lets pass: those within the text stay what they were. */
export function styled(
  format: Parameters<typeof styleText>[0],
  text: string,
  options?: Parameters<typeof styleText>[2],
): string {
  const [before = '', after = ''] = styleText(format, '|', options).split('|');
  return before.replaceAll(SGR, ownSequence) + text + after.replaceAll(SGR, ownSequence);
}

/** What is written to a terminal: our own sequences as they are, a sign in the place of all other characters that control it. */
export function terminalOutput(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(OWN_OR_CONTROL, (_found, parameters?: string, final?: string) =>
      final === undefined ? '\u{fffd}' : `\u001B[${parameters ?? ''}${final}`,
    );
}
