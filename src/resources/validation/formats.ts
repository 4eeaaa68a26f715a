// String formats that API servers of 1.34 validate in custom resources (apiextensions, `supportedVersionedFormats`;
// name formats only from 1.35, because 1.34 accepts what 1.33 does). Other formats are ignored.
import { isIPv4, isIPv6 } from 'node:net';
import { isBase64 } from '../../values/index.ts';
import { isDate, isDateTime, parseDuration } from '../../go/index.ts';

type Check = (text: string) => boolean;

const matches =
  (pattern: RegExp): Check =>
  (text) =>
    pattern.test(text);

const UUID = (version: string, variant: string): RegExp =>
  new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'iu');

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['bsonobjectid', matches(/^[0-9a-fA-F]{24}$/u)],
  ['uri', isRequestUri],
  ['email', isEmail],
  ['hostname', isHostname],
  ['ipv4', (text) => isIPv4(withoutLeadingZeros(text)) || (text.includes('.') && isIpv6(text))],
  ['ipv6', (text) => isIpv6(text)],
  ['cidr', isCidr],
  [
    'mac',
    matches(
      /^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}(?:[0-9a-f]{2}|(?:[0-9a-f]{2}\1){2}[0-9a-f]{2}|(?:[0-9a-f]{2}\1){14}[0-9a-f]{2})|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){3}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){9})$/iu,
    ),
  ],
  ['uuid', matches(UUID('[0-9a-f]', '[0-9a-f]'))],
  ['uuid3', matches(UUID('3', '[0-9a-f]'))],
  ['uuid4', matches(UUID('4', '[89ab]'))],
  ['uuid5', matches(UUID('5', '[89ab]'))],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['creditcard', isCreditCard],
  ['ssn', (text) => text.length === 11 && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/u.test(text)],
  ['hexcolor', matches(/^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/u)],
  ['rgbcolor', isRgbColor],
  ['byte', (text) => text !== '' && isBase64(text)],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
]);

/** The check of a format; undefined for ignored ones. Dashes in format names are ignored. */
export function formatCheck(format: string | undefined): Check | undefined {
  return format === undefined || format === '' ? undefined : CHECKS.get(format.replaceAll('-', ''));
}

/** Kubernetes once accepted addresses with leading zeros, and schemas still do. */
function withoutLeadingZeros(address: string): string {
  return address.replaceAll(/(^|\.)0+(?=\d)/gu, '$1');
}

/** Go's addresses have no zones. */
function isIpv6(text: string): boolean {
  return text.includes(':') && !text.includes('%') && isIPv6(text);
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  const most = isIPv4(withoutLeadingZeros(address)) ? 32 : isIpv6(address) ? 128 : -1;
  return more.length === 0 && /^\d{1,3}$/u.test(bits) && Number(bits) <= most;
}

/** An absolute URI or an absolute path, as in HTTP requests. */
function isRequestUri(text: string): boolean {
  if (text === '' || /[\p{Cc}]/u.test(text)) {
    return false;
  }
  if (text.startsWith('/') || text === '*') {
    return !/%(?![0-9a-fA-F]{2})/u.test(text.split('?')[0] ?? '');
  }
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*:/u.exec(text)?.[0];
  if (scheme === undefined) {
    return false;
  }
  const rest = text.slice(scheme.length);
  return rest !== '' && (!rest.startsWith('//') || isAuthority(/^\/\/([^/?]*)/u.exec(rest)?.[1] ?? ''));
}

function isAuthority(authority: string): boolean {
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return !/[\s<>"^`{}|\\]/u.test(host) && /^(?:\[[^\]]*\]|[^:[\]]*)(?::\d*)?$/u.test(host);
}

/** `name@domain`, optionally with a display name: `A B <a@b>` (RFC 5322 without comments). */
function isEmail(text: string): boolean {
  const trimmed = text.trim();
  const bracketed = /^(?<display>[^<>]*)<(?<address>[^<>]*)>$/u.exec(trimmed)?.groups;
  const display = bracketed?.['display']?.trim() ?? '';
  const isDisplay = /^(?:"(?:[^"\\]|\\.)*"|[^"(),:;<>@[\]\\]*)$/u.test(display);
  return isDisplay && isAddress(bracketed?.['address'] ?? trimmed);
}

function isAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)];
  const atom = /^[^\s()<>[\]:;@\\,."\p{Cc}]+(?:\.[^\s()<>[\]:;@\\,."\p{Cc}]+)*$/u;
  return at > 0 && atom.test(domain) && (atom.test(local) || /^"(?:[^"\\\p{Cc}]|\\.)*"$/u.test(local));
}

/** Labels of letters, digits, symbols and dashes; the last of several has at least two letters. */
function isHostname(text: string): boolean {
  const labels = text.split('.');
  const last = labels.at(-1) ?? '';
  if (Buffer.byteLength(text) > 255 || labels.some((label) => Buffer.byteLength(label) > 63)) {
    return false;
  }
  if (labels.length === 1) {
    return /^[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]*)$/u.test(last);
  }
  const isLabel = (label: string): boolean =>
    /^[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$/u.test(label);
  return labels.slice(0, -1).every(isLabel) && /^[a-zA-Z\p{L}]{2,}$/u.test(last);
}

function isIsbn10(text: string): boolean {
  const digits = text.replaceAll(/[\s-]+/gu, '');
  if (!/^(?:[0-9]{9}X|[0-9]{10})$/u.test(digits)) {
    return false;
  }
  const sum = Array.from(digits).reduce(
    (total, digit, at) => total + (at + 1) * (digit === 'X' ? 10 : Number(digit)),
    0,
  );
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replaceAll(/[\s-]+/gu, '');
  const sum = Array.from(digits).reduce((total, digit, at) => total + (at % 2 === 0 ? 1 : 3) * Number(digit), 0);
  return /^[0-9]{13}$/u.test(digits) && sum % 10 === 0;
}

/** Prefixes and lengths of issuers, and Luhn's checksum. */
function isCreditCard(text: string): boolean {
  const digits = text.replaceAll(/[^0-9]+/gu, '');
  const issuers =
    /^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/u;
  const sum = Array.from(digits)
    .toReversed()
    .reduce((total, digit, at) => {
      const value = Number(digit) * (at % 2 === 0 ? 1 : 2);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return issuers.test(digits) && sum % 10 === 0;
}

function isRgbColor(text: string): boolean {
  const parts = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/u.exec(text)?.slice(1);
  return parts?.every((part) => Number(part) <= 255 && String(Number(part)) === part) ?? false;
}

/** Longer texts would take long to match. */
const MAX_DURATION_LENGTH = 500;

/** Durations of Go (`1h2.5s`) and Scala (`3 days`). */
function isDuration(text: string): boolean {
  if (text.length > MAX_DURATION_LENGTH) {
    return false;
  }
  if (parseDuration(text) !== undefined) {
    return true;
  }
  const units = /^(?:ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*)$/iu;
  return Array.from(text.matchAll(/\d+\s*([A-Za-zµ]+)/gu)).some(([, unit = '']) => units.test(unit));
}
