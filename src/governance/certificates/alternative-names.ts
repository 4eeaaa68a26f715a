import type { X509Certificate } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { parseJson, textOf } from '../../values/index.ts';

/** Names that are checked. Certificates of public authorities have at most 100. */
export const MAX_ALTERNATIVE_NAMES = 1000;

/**
 * One name in the text of Node (https://nodejs.org/api/crypto.html#x509subjectaltname), which quotes values as JSON when
 * they contain a comma, a quote or another special character.
 */
const NAME = /([A-Za-z0-9 ]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/y;

/** Kinds of names that patterns match. */
const CHECKED: ReadonlySet<string> = new Set(['DNS', 'IP Address', 'URI', 'email']);

/** The DNS names, IP addresses, URIs and e-mail addresses of a certificate; undefined if they cannot be read. */
export function alternativeNames({
  subjectAltName,
}: Pick<X509Certificate, 'subjectAltName'>): readonly string[] | undefined {
  const text = subjectAltName ?? '';
  const names: string[] = [];
  NAME.lastIndex = 0;
  while (NAME.lastIndex < text.length) {
    const [, kind = '', value = ''] = NAME.exec(text) ?? [];
    if (kind === '' || names.length === MAX_ALTERNATIVE_NAMES) {
      return undefined;
    }
    const name = kind === 'IP Address' ? addressText(value) : value.startsWith('"') ? unquoted(value) : value;
    if (name === undefined) {
      return undefined;
    }
    if (CHECKED.has(kind)) {
      names.push(name);
    }
  }
  return names;
}

function unquoted(value: string): string | undefined {
  try {
    return textOf(parseJson(value));
  } catch {
    return undefined;
  }
}

/** Node does not shorten IPv6 addresses, but patterns are written for `::1`. */
function addressText(value: string): string | undefined {
  return ipaddr.isValid(value) ? ipaddr.parse(value).toString() : undefined;
}
