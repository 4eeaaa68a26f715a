import { isDate, isDateTime } from '../../go/index.ts';
import type { CelValue } from '../value.ts';
import { LibraryValue } from './declare.ts';
import { requestUriProblem } from './url-value.ts';

/** Returns the errors of a text; empty if it has the format. */
type Validate = (text: string) => readonly string[];

/** A format for validation: a value of type `kubernetes.NamedFormat`. */
export class NamedFormat extends LibraryValue {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly name: string;
  /** Length of the regular expression with which API servers compute the cost. */
  readonly patternLength: number;
  readonly validate: Validate;

  constructor(name: string, patternLength: number, validate: Validate) {
    super();
    this.name = name;
    this.patternLength = patternLength;
    this.validate = validate;
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof NamedFormat;
  }

  equals(other: CelValue): boolean {
    return other instanceof NamedFormat && other.name === this.name;
  }
}

const MAX_LABEL = 63;
const MAX_SUBDOMAIN = 253;
/** Lengths of the regular expressions for date-times and UUIDs in API servers. */
const DATE_TIME_PATTERN_LENGTH = 71;
const UUID_PATTERN_LENGTH = 70;

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${NAME})?`;

const ALNUM_ENDS = 'and must start and end with an alphanumeric character';

/** An error message with the regular expression and examples. */
function mismatch(rule: string, pattern: string, ...examples: readonly string[]): string {
  const quoted = examples.map((example) => `'${example}', `).join(' or ');
  return `${rule} (e.g. ${quoted}regex used for validation is '${pattern}')`;
}

/** API servers count bytes, and call them characters for object names. */
type Unit = 'bytes' | 'characters';

function tooLong(text: string, max: number, unit: Unit): readonly string[] {
  return Buffer.byteLength(text, 'utf8') > max ? [`must be no more than ${max} ${unit}`] : [];
}

/**
 * Lower case letters, digits and hyphens, without hyphens at the ends. Not a regular expression, because the text may
 * be long.
 */
function isLabel(text: string): boolean {
  return /^[a-z0-9]$/.test(text) || (/^[a-z0-9][-a-z0-9]*$/.test(text) && !text.endsWith('-'));
}

function isSubdomain(text: string): boolean {
  return text.split('.').every(isLabel);
}

function isName(text: string): boolean {
  return /^[A-Za-z0-9][-A-Za-z0-9_.]*$/.test(text) && /[A-Za-z0-9]$/.test(text.slice(-1));
}

function labelProblems(text: string): readonly string[] {
  const problems = tooLong(text, MAX_LABEL, 'characters');
  if (isLabel(text)) {
    return problems;
  }
  const rule = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${ALNUM_ENDS}`;
  const problem = isSubdomain(text) ? 'must not contain dots' : mismatch(rule, LABEL, 'my-name', '123-abc');
  return [...problems, problem];
}

function subdomainProblems(text: string, unit: Unit): readonly string[] {
  const problems = tooLong(text, MAX_SUBDOMAIN, unit);
  const rule = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${ALNUM_ENDS}`;
  return isSubdomain(text) ? problems : [...problems, mismatch(rule, SUBDOMAIN, 'example.com')];
}

function objectNameProblems(text: string): readonly string[] {
  return subdomainProblems(text, 'characters');
}

function label1035Problems(text: string): readonly string[] {
  const problems = tooLong(text, MAX_LABEL, 'characters');
  const rule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
  const isValid = isLabel(text) && /^[a-z]/.test(text);
  return isValid ? problems : [...problems, mismatch(rule, LABEL_1035, 'my-name', 'abc-123')];
}

/** A name with an optional domain prefix, like a label key. */
function qualifiedNameProblems(text: string): readonly string[] {
  const parts = text.split('/');
  const rule = `must consist of alphanumeric characters, '-', '_' or '.', ${ALNUM_ENDS}`;
  const nameMismatch = mismatch(rule, NAME, 'MyName', 'my.name', '123-abc');
  const [first = '', second] = parts;
  if (parts.length > 2) {
    return [
      `a valid label key ${nameMismatch} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = second ?? first;
  const problems = second === undefined ? [] : prefixProblems(first);
  const lengths = name === '' ? ['must be non-empty'] : tooLong(name, MAX_LABEL, 'bytes');
  const mismatches = isName(name) ? [] : [nameMismatch];
  return [...problems, ...[...lengths, ...mismatches].map((problem) => `name part ${problem}`)];
}

function prefixProblems(prefix: string): readonly string[] {
  const problems = prefix === '' ? ['must be non-empty'] : subdomainProblems(prefix, 'bytes');
  return problems.map((problem) => `prefix part ${problem}`);
}

function labelValueProblems(text: string): readonly string[] {
  const problems = tooLong(text, MAX_LABEL, 'bytes');
  const rule = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${ALNUM_ENDS}`;
  const isValid = text === '' || isName(text);
  return isValid ? problems : [...problems, mismatch(rule, LABEL_VALUE, 'MyValue', 'my_value', '12345')];
}

/** A prefix for generated names may end with a hyphen: API servers validate it without its last two characters. */
function asPrefix(validate: Validate): Validate {
  return (text) => validate(text.length > 1 && text.endsWith('-') ? `${withoutLastBytes(text)}a` : text);
}

/** Without the hyphen and the byte before it. */
function withoutLastBytes(text: string): string {
  return Buffer.from(text, 'utf8').subarray(0, -2).toString('utf8');
}

function onlyIf(isValid: (text: string) => boolean, problem: string): Validate {
  return (text) => (isValid(text) ? [] : [problem]);
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text);
}

/** Complete groups of four, or an empty string. */
function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function uriProblems(text: string): readonly string[] {
  const problem = requestUriProblem(text);
  return problem === undefined ? [] : [problem];
}

/** Formats by their names in expressions. */
export const NAMED_FORMATS: ReadonlyMap<string, NamedFormat> = new Map(
  Object.entries({
    dns1123Label: new NamedFormat('DNS1123Label', 30, labelProblems),
    dns1123Subdomain: new NamedFormat('DNS1123Subdomain', 60, objectNameProblems),
    dns1035Label: new NamedFormat('DNS1035Label', 30, label1035Problems),
    qualifiedName: new NamedFormat('QualifiedName', 60, qualifiedNameProblems),
    dns1123LabelPrefix: new NamedFormat('DNS1123LabelPrefix', 30, asPrefix(labelProblems)),
    dns1123SubdomainPrefix: new NamedFormat('DNS1123SubdomainPrefix', 60, asPrefix(objectNameProblems)),
    dns1035LabelPrefix: new NamedFormat('DNS1035LabelPrefix', 30, asPrefix(label1035Problems)),
    labelValue: new NamedFormat('LabelValue', 40, labelValueProblems),
    uri: new NamedFormat('URI', 1103, uriProblems),
    uuid: new NamedFormat('uuid', UUID_PATTERN_LENGTH, onlyIf(isUuid, 'does not match the UUID format')),
    byte: new NamedFormat('byte', 84, onlyIf(isBase64, 'invalid base64')),
    date: new NamedFormat('date', DATE_TIME_PATTERN_LENGTH, onlyIf(isDate, 'invalid date')),
    datetime: new NamedFormat('datetime', DATE_TIME_PATTERN_LENGTH, onlyIf(isDateTime, 'invalid datetime')),
  }),
);

/** Whether a text is a valid namespace name. */
export function isNamespaceName(text: string): boolean {
  return labelProblems(text).length === 0;
}

/** Whether a text is a valid service account name. */
export function isServiceAccountName(text: string): boolean {
  return objectNameProblems(text).length === 0;
}
