// Kubernetes' rules for names, with the texts that its users know (apimachinery 0.34, `util/validation`). Each gives what is
// wrong with a name; nothing when it is right.

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u;
const DNS_1035_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/u;
const QUALIFIED_PART = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/u;

/** Names of objects, and groups of APIs (RFC 1123). */
export const MAX_SUBDOMAIN_LENGTH = 253;
/** Parts of names, and values of labels (RFC 1123). */
export const MAX_LABEL_LENGTH = 63;

/** What messages call the unit of lengths. It is bytes that are counted. */
type Unit = 'bytes' | 'characters';

const QUALIFIED_RULE = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${QUALIFIED}')`;

export function dnsSubdomainProblems(name: string, unit: Unit = 'characters'): string[] {
  const problems = lengthProblems(name, MAX_SUBDOMAIN_LENGTH, unit);
  if (!isSubdomain(name)) {
    problems.push(
      `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${LABEL}(\\.${LABEL})*')`,
    );
  }
  return problems;
}

export function dnsLabelProblems(name: string): string[] {
  const problems = lengthProblems(name, MAX_LABEL_LENGTH);
  if (!DNS_LABEL.test(name)) {
    problems.push(
      isSubdomain(name)
        ? 'must not contain dots'
        : `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
    );
  }
  return problems;
}

/** Names of services: DNS labels that start with a letter. */
export function dns1035LabelProblems(name: string): string[] {
  const problems = lengthProblems(name, MAX_LABEL_LENGTH);
  if (!DNS_1035_LABEL.test(name)) {
    problems.push(
      `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${LABEL_1035}')`,
    );
  }
  return problems;
}

/** The message of a qualified name, which differs between releases of Kubernetes. */
interface QualifiedNameMessage {
  readonly subject: string;
  readonly unit: Unit;
}

/** `name` or `prefix/name`, such as keys of labels and annotations. */
export function qualifiedNameProblems(
  key: string,
  { subject, unit }: QualifiedNameMessage = { subject: 'a qualified name', unit: 'characters' },
): string[] {
  const parts = key.split('/');
  if (parts.length > 2) {
    return [`${subject} ${QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const problems: string[] = [];
  const name = parts.at(-1) ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  if (prefix === '') {
    problems.push('prefix part must be non-empty');
  } else if (prefix !== undefined) {
    problems.push(...dnsSubdomainProblems(prefix, unit).map((problem) => `prefix part ${problem}`));
  }
  if (name === '') {
    problems.push('name part must be non-empty');
  } else {
    problems.push(...lengthProblems(name, MAX_LABEL_LENGTH, unit).map((problem) => `name part ${problem}`));
  }
  if (!QUALIFIED_PART.test(name)) {
    problems.push(`name part ${QUALIFIED_RULE}`);
  }
  return problems;
}

export function labelValueProblems(value: string, unit: Unit = 'characters'): string[] {
  const problems = lengthProblems(value, MAX_LABEL_LENGTH, unit);
  if (value !== '' && !QUALIFIED_PART.test(value)) {
    problems.push(
      `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${QUALIFIED})?')`,
    );
  }
  return problems;
}

/** Names that become one part of a URL's path. */
export function pathSegmentProblems(name: string): string[] {
  return name === '.' || name === '..' ? [`may not be '${name}'`] : pathSegmentPrefixProblems(name);
}

/** What names of path segments may begin with. */
export function pathSegmentPrefixProblems(prefix: string): string[] {
  return ['/', '%'].filter((letter) => prefix.includes(letter)).map((letter) => `may not contain '${letter}'`);
}

function isSubdomain(name: string): boolean {
  return name.split('.').every((part) => DNS_LABEL.test(part));
}

function lengthProblems(name: string, most: number, unit: Unit = 'characters'): string[] {
  return Buffer.byteLength(name) > most ? [`must be no more than ${most} ${unit}`] : [];
}
