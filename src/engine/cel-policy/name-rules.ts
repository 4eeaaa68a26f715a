// Kubernetes' rules for names, with the texts that its users know. Each gives what is wrong with a name; none when nothing is.

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1035_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const QUALIFIED_PART = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const IDENTIFIER = /^[_a-zA-Z][_a-zA-Z0-9]*$/;

const RESERVED = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** Names of objects, and groups of APIs. */
export const MAX_SUBDOMAIN_LENGTH = 253;
/** Parts of names, and values of labels. */
export const MAX_LABEL_LENGTH = 63;

export function subdomainProblems(name: string): string[] {
  const problems = lengthProblems(name, MAX_SUBDOMAIN_LENGTH);
  if (!name.split('.').every((part) => DNS_LABEL.test(part))) {
    problems.push(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    );
  }
  return problems;
}

export function dns1035Problems(name: string): string[] {
  const problems = lengthProblems(name, MAX_LABEL_LENGTH);
  if (!DNS_1035_LABEL.test(name)) {
    problems.push(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    );
  }
  return problems;
}

/** `name` or `prefix/name`, as keys of labels and annotations are. */
export function qualifiedNameProblems(name: string): string[] {
  const parts = name.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const problems: string[] = [];
  const [prefix = '', local = ''] = parts.length === 2 ? parts : [undefined, parts[0]];
  if (parts.length === 2) {
    problems.push(
      ...(prefix === ''
        ? ['prefix part must be non-empty']
        : subdomainProblems(prefix).map((one) => `prefix part ${one}`)),
    );
  }
  if (local === '') {
    problems.push('name part must be non-empty');
  } else if (local.length > MAX_LABEL_LENGTH) {
    problems.push(`name part must be no more than ${MAX_LABEL_LENGTH} bytes`);
  }
  if (!QUALIFIED_PART.test(local)) {
    problems.push(`name part ${QUALIFIED_RULE}`);
  }
  return problems;
}

const QUALIFIED_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

export function labelValueProblems(value: string): string[] {
  const problems = lengthProblems(value, MAX_LABEL_LENGTH);
  if (value !== '' && !QUALIFIED_PART.test(value)) {
    problems.push(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    );
  }
  return problems;
}

/** Names that become one part of a URL's path. */
export function pathSegmentProblems(name: string): string[] {
  if (name === '.' || name === '..') {
    return [`may not be '${name}'`];
  }
  return ['/', '%'].filter((letter) => name.includes(letter)).map((letter) => `may not contain '${letter}'`);
}

export function isCelIdentifier(name: string): boolean {
  return IDENTIFIER.test(name) && !RESERVED.has(name);
}

function lengthProblems(name: string, most: number): string[] {
  return name.length > most ? [`must be no more than ${most} bytes`] : [];
}
