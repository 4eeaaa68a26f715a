import { fromBinary, quoteBytes, toBinary } from '../../go/index.ts';
import { setOwn } from '../../values/index.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { LibraryValue } from '../model/library-value.ts';
import { fail } from './declare.ts';
import { parseAddress } from './ip-address.ts';

/**
 * URLs as parsed and printed by Go's `net/url` in API servers, which follows neither RFC 3986 nor the WHATWG URL
 * standard. Texts are bytes, stored as strings with one UTF-16 unit per byte (see toBinary).
 */

/** Parts of a URL with different escaping. */
type Part = 'path' | 'host' | 'zone' | 'user' | 'query' | 'fragment';

const ALPHANUMERIC = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~';
const HOST_CHARACTERS = new Set(`${ALPHANUMERIC.replace('~', '')}~!"$&'()*+,:;<=>[]`);

/** Characters that need no escape, by part. */
const UNESCAPED: Readonly<Record<Part, ReadonlySet<string>>> = {
  path: new Set(`${ALPHANUMERIC}$&+,/:;=@`),
  host: HOST_CHARACTERS,
  zone: HOST_CHARACTERS,
  user: new Set(`${ALPHANUMERIC}$&+,;=`),
  query: new Set(ALPHANUMERIC),
  fragment: new Set(`${ALPHANUMERIC}!$&()*+,/:;=?@`),
};

/** Additional characters that are accepted unescaped in a path or fragment. */
const WRITTEN = new Set("!$&'()*+,;=:@[]%");

/** Maximum number of query parameters; API servers ignore a query with more. */
const MAX_QUERY_PARAMETERS = 10_000;

interface Parsed {
  readonly scheme: string;
  readonly opaque: string;
  /** Undefined without user information; the password is undefined without a colon. */
  readonly user?: { readonly name: string; readonly password?: string };
  readonly host: string;
  /** Unescaped, and as in the source. */
  readonly path: Written;
  readonly fragment: Written;
  readonly query: string;
  /** Whether the URL ends with a question mark. */
  readonly hasEmptyQuery: boolean;
  /** Whether the URL has a scheme and a path but no authority. */
  readonly omitsHost: boolean;
}

interface Written {
  readonly plain: string;
  readonly raw: string;
}

const NOTHING: Written = { plain: '', raw: '' };

/** A URL: a value of type `kubernetes.URL`. */
export class Url extends LibraryValue {
  readonly typeName = 'kubernetes.URL';
  readonly #parsed: Parsed;

  constructor(parsed: Parsed) {
    super();
    this.#parsed = parsed;
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof Url;
  }

  equals(other: CelValue): boolean {
    return other instanceof Url && other.toString() === this.toString();
  }

  get scheme(): string {
    return this.#parsed.scheme;
  }

  /** With the port. */
  get host(): string {
    return fromBinary(this.#parsed.host);
  }

  get hostname(): string {
    return fromBinary(splitPort(this.#parsed.host)[0]);
  }

  get port(): string {
    return splitPort(this.#parsed.host)[1];
  }

  get escapedPath(): string {
    return fromBinary(escapedPath(this.#parsed.path));
  }

  /** Values by query parameter name; parameters with invalid escapes are ignored. */
  get query(): CelValue {
    const values = new Map<string, string[]>();
    const parts = this.#parsed.query.split('&');
    for (const part of parts.length > MAX_QUERY_PARAMETERS ? [] : parts) {
      const [rawName, rawValue] = cut(part, '=');
      const name = unescape(rawName, 'query');
      const value = unescape(rawValue, 'query');
      if (part !== '' && !part.includes(';') && typeof name === 'string' && typeof value === 'string') {
        const key = fromBinary(name);
        const others = values.get(key);
        if (others === undefined) {
          values.set(key, [fromBinary(value)]);
        } else {
          others.push(fromBinary(value));
        }
      }
    }
    const record: Record<string, CelValue> = {};
    for (const [name, list] of values) {
      setOwn(record, name, list);
    }
    return record;
  }

  override toString(): string {
    const { scheme, opaque, query, hasEmptyQuery, fragment } = this.#parsed;
    const beginning = scheme === '' ? '' : `${scheme}:`;
    const middle = opaque === '' ? this.#authorityAndPath(beginning) : opaque;
    const search = hasEmptyQuery || query !== '' ? `?${query}` : '';
    const end = fragment.plain === '' ? '' : `#${asWritten(fragment, 'fragment')}`;
    return fromBinary(`${beginning}${middle}${search}${end}`);
  }

  #authorityAndPath(beginning: string): string {
    const { scheme, user, host, path, omitsHost } = this.#parsed;
    const hasAuthority = scheme !== '' || host !== '' || user !== undefined;
    let text = '';
    if (hasAuthority && !(omitsHost && host === '' && user === undefined)) {
      text = host !== '' || path.plain !== '' || user !== undefined ? '//' : '';
      text += `${userText(user)}${escape(host, 'host')}`;
    }
    const written = escapedPath(path);
    if (written !== '' && !written.startsWith('/') && host !== '') {
      text += '/';
    }
    // Without a scheme, a colon in the first segment would be parsed as the end of a scheme.
    const isAmbiguous = beginning === '' && text === '' && cut(written, '/')[0].includes(':');
    return `${text}${isAmbiguous ? './' : ''}${written}`;
  }
}

/** The value of `url(text)`: an absolute URL or an absolute path. */
export function parseUrl(text: string): Url | EvaluationFailure {
  const problem = requestUriProblem(text);
  if (problem !== undefined) {
    return fail(`URL parse error during conversion from string: ${problem}`);
  }
  const binary = toBinary(text);
  const [before, after] = cut(binary, '#');
  const parsed = parse(before, false);
  if (typeof parsed === 'string') {
    return fail(`URL parse error during conversion from string: ${parseError(before, parsed)}`);
  }
  const fragment = after === '' ? NOTHING : read(after, 'fragment');
  return fragment instanceof EvaluationFailure
    ? fail(`URL parse error during conversion from string: ${parseError(binary, fragment.message)}`)
    : new Url({ ...parsed, fragment });
}

/** Why a text is not a valid request URI; undefined if it is one. A fragment is not parsed. */
export function requestUriProblem(text: string): string | undefined {
  const binary = toBinary(text);
  const parsed = parse(binary, true);
  return typeof parsed === 'string' ? parseError(binary, parsed) : undefined;
}

function parseError(binary: string, problem: string): string {
  return `parse ${quoteBytes(binary)}: ${problem}`;
}

/** The parts of a URL without a fragment, or the error message. */
function parse(text: string, isRequest: boolean): Parsed | string {
  const nothing = { opaque: '', host: '', path: NOTHING, fragment: NOTHING, omitsHost: false, hasEmptyQuery: false };
  if (hasControlCharacter(text)) {
    return 'net/url: invalid control character in URL';
  }
  if (text === '' && isRequest) {
    return 'empty url';
  }
  if (text === '*') {
    return { ...nothing, scheme: '', query: '', path: { plain: '*', raw: '' } };
  }
  const [scheme, afterScheme] = splitScheme(text);
  if (scheme === undefined) {
    return 'missing protocol scheme';
  }
  const hasEmptyQuery = afterScheme.indexOf('?') === afterScheme.length - 1 && afterScheme !== '';
  const [rest, query] = cut(afterScheme, '?');
  const common = { ...nothing, scheme: scheme.toLowerCase(), query, hasEmptyQuery };
  if (!rest.startsWith('/')) {
    if (scheme !== '') {
      return { ...common, opaque: rest };
    }
    if (isRequest) {
      return 'invalid URI for request';
    }
    if (cut(rest, '/')[0].includes(':')) {
      return 'first path segment in URL cannot contain colon';
    }
  }
  return parseHierarchy(common, rest, isRequest);
}

/** Parses what follows the scheme: an authority and a path. */
function parseHierarchy(common: Parsed, rest: string, isRequest: boolean): Parsed | string {
  const mayHaveAuthority = common.scheme !== '' || (!isRequest && !rest.startsWith('///'));
  if (!mayHaveAuthority || !rest.startsWith('//')) {
    const path = read(rest, 'path');
    const omitsHost = common.scheme !== '' && rest.startsWith('/');
    return path instanceof EvaluationFailure ? path.message : { ...common, omitsHost, path };
  }
  const slash = rest.indexOf('/', 2);
  const authority = parseAuthority(common.scheme, rest.slice(2, slash < 0 ? rest.length : slash));
  if (typeof authority === 'string') {
    return authority;
  }
  const path = read(slash < 0 ? '' : rest.slice(slash), 'path');
  return path instanceof EvaluationFailure ? path.message : { ...common, ...authority, path };
}

function splitScheme(text: string): readonly [scheme: string | undefined, rest: string] {
  const [, scheme] = /^([a-zA-Z][a-zA-Z0-9+\-.]*):/.exec(text) ?? [];
  if (scheme !== undefined) {
    return [scheme, text.slice(scheme.length + 1)];
  }
  return text.startsWith(':') ? [undefined, text] : ['', text];
}

function parseAuthority(scheme: string, authority: string): Pick<Parsed, 'user' | 'host'> | string {
  const at = authority.lastIndexOf('@');
  const host = parseHost(scheme, authority.slice(at + 1));
  if (host instanceof EvaluationFailure) {
    return host.message;
  }
  if (at < 0) {
    return { host };
  }
  const information = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(information)) {
    return 'net/url: invalid userinfo';
  }
  const [rawName, rawPassword] = cut(information, ':');
  const name = unescape(rawName, 'user');
  const password = unescape(rawPassword, 'user');
  if (name instanceof EvaluationFailure) {
    return name.message;
  }
  if (password instanceof EvaluationFailure) {
    return password.message;
  }
  return { host, user: information.includes(':') ? { name, password } : { name } };
}

function parseHost(scheme: string, host: string): string | EvaluationFailure {
  const bracket = host.lastIndexOf('[');
  if (bracket > 0) {
    return fail('invalid IP-literal');
  }
  if (bracket === 0) {
    return parseLiteral(host);
  }
  const isHttp = scheme === 'http' || scheme === 'https';
  const colon = isHttp ? host.indexOf(':') : host.lastIndexOf(':');
  if (colon >= 0 && !isOptionalPort(host.slice(colon))) {
    return fail(`invalid port ${quoteBytes(host.slice(colon))} after host`);
  }
  return unescape(host, 'host');
}

/** Parses an IPv6 address in brackets with an optional port. */
function parseLiteral(host: string): string | EvaluationFailure {
  const end = host.lastIndexOf(']');
  if (end < 0) {
    return fail("missing ']' in host");
  }
  const port = host.slice(end + 1);
  if (!isOptionalPort(port)) {
    return fail(`invalid port ${quoteBytes(port)} after host`);
  }
  const zoneAt = host.slice(1, end).indexOf('%25');
  const name = unescape(zoneAt < 0 ? host.slice(1, end) : host.slice(1, 1 + zoneAt), 'host');
  const zone = unescape(zoneAt < 0 ? '' : host.slice(1 + zoneAt, end), 'zone');
  if (name instanceof EvaluationFailure || zone instanceof EvaluationFailure) {
    return name instanceof EvaluationFailure ? name : zone;
  }
  const address = parseAddress(fromBinary(name + zone));
  if (typeof address === 'string') {
    return fail(`invalid host: ${address}`);
  }
  return address.length === 32 ? fail('invalid IP-literal') : `[${name}${zone}]${port}`;
}

function isOptionalPort(text: string): boolean {
  return /^(?::[0-9]*)?$/.test(text);
}

function splitPort(host: string): [host: string, port: string] {
  const colon = host.lastIndexOf(':');
  const hasPort = colon >= 0 && isOptionalPort(host.slice(colon));
  const name = hasPort ? host.slice(0, colon) : host;
  const isBracketed = name.startsWith('[') && name.endsWith(']');
  return [isBracketed ? name.slice(1, -1) : name, hasPort ? host.slice(colon + 1) : ''];
}

function userText(user: Parsed['user']): string {
  if (user === undefined) {
    return '';
  }
  const password = user.password === undefined ? '' : `:${escape(user.password, 'user')}`;
  return `${escape(user.name, 'user')}${password}@`;
}

/** Parses a path or fragment; keeps the source text if escaping the plain text gives another one. */
function read(text: string, part: 'path' | 'fragment'): Written | EvaluationFailure {
  const plain = unescape(text, part);
  if (plain instanceof EvaluationFailure) {
    return plain;
  }
  return { plain, raw: escape(plain, part) === text ? '' : text };
}

function escapedPath(path: Written): string {
  return path.plain === '*' && path.raw === '' ? '*' : asWritten(path, 'path');
}

/** The source text if its escapes are valid, otherwise the escaped plain text. */
function asWritten({ plain, raw }: Written, part: 'path' | 'fragment'): string {
  const isValid = raw !== '' && Array.from(raw).every((unit) => WRITTEN.has(unit) || UNESCAPED[part].has(unit));
  return isValid ? raw : escape(plain, part);
}

function escape(text: string, part: Part): string {
  const allowed = UNESCAPED[part];
  return Array.from(text, (unit) => (allowed.has(unit) ? unit : `%${hexOf(unit)}`)).join('');
}

function hexOf(unit: string): string {
  return unit.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
}

function unescape(text: string, part: Part): string | EvaluationFailure {
  const parts: string[] = [];
  for (let index = 0; index < text.length; index++) {
    const unit = text.charAt(index);
    if (unit === '%') {
      const escaped = text.slice(index, index + 3);
      if (!isEscape(escaped, part)) {
        return fail(`invalid URL escape ${quoteBytes(escaped)}`);
      }
      parts.push(String.fromCharCode(Number.parseInt(escaped.slice(1), 16)));
      index += 2;
    } else if ((part === 'host' || part === 'zone') && unit < '\u0080' && !HOST_CHARACTERS.has(unit)) {
      return fail(`invalid character ${quoteBytes(unit)} in host name`);
    } else {
      parts.push(unit === '+' && part === 'query' ? ' ' : unit);
    }
  }
  return parts.join('');
}

/** Hosts may escape only bytes outside of ASCII; zones also characters that are not allowed in a host. */
function isEscape(escaped: string, part: Part): boolean {
  if (!/^%[0-9a-fA-F]{2}$/.test(escaped)) {
    return false;
  }
  const value = Number.parseInt(escaped.slice(1), 16);
  switch (part) {
    case 'host':
      return value >= 0x80 || escaped === '%25';
    case 'zone':
      return escaped === '%25' || value === 0x20 || HOST_CHARACTERS.has(String.fromCharCode(value));
    default:
      return true;
  }
}

function hasControlCharacter(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x20 || unit === 0x7f) {
      return true;
    }
  }
  return false;
}

/** The text before and after the first separator. */
function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
