/** What a server requires of a request that it answered with 401 (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** In lower case: `basic`, `bearer`. */
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Longest header that is parsed; a longer one counts as absent. */
const MAX_CHALLENGE_LENGTH = 8192;
const SCHEME = /^\s*(?:,\s*)?([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?:\s+|$)(?!=)/;
const PARAMETER = /^\s*(?:,\s*)?([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/;

/** Parses the header `WWW-Authenticate`. Ends at the first part that is not well-formed. */
export function parseChallenges(header: string | undefined): readonly Challenge[] {
  let rest = header === undefined || header.length > MAX_CHALLENGE_LENGTH ? '' : header;
  const challenges: Challenge[] = [];
  for (let match = SCHEME.exec(rest); match !== null; match = SCHEME.exec(rest)) {
    rest = rest.slice(match[0].length);
    const parameters = new Map<string, string>();
    for (let found = PARAMETER.exec(rest); found !== null; found = PARAMETER.exec(rest)) {
      const [whole, name = '', quoted, plain = ''] = found;
      parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain);
      rest = rest.slice(whole.length);
    }
    challenges.push({ scheme: (match[1] ?? '').toLowerCase(), parameters });
  }
  return challenges;
}
