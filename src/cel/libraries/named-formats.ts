import { isDate, isDateTime } from '../../go/index.ts';
import type { CelValue } from '../value.ts';
import { LibraryValue } from './declare.ts';
import { requestUriProblem } from './url-value.ts';

/** Gives what is wrong with a text; nothing when it has the format. */
type Validate = (text: string) => readonly string[];

/** A format that texts are validated by: a value of type `kubernetes.NamedFormat`. */
export class NamedFormat extends LibraryValue {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly name: string;
  /** Length of the regular expression that API servers count a validation as. */
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
/** Of the regular expression for dates with times, and of that for UUIDs, in API servers. */
const DATE_TIME_PATTERN_LENGTH = 71;
const UUID_PATTERN_LENGTH = 70;

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${NAME})?`;

const ALNUM_ENDS = 'and must start and end with an alphanumeric character';

/** A mistake that quotes the expression and examples. */
function mismatch(rule: string, pattern: string, ...examples: readonly string[]): string {
  const quoted = examples.map((example) => `'${example}', `).join(' or ');
  return `${rule} (e.g. ${quoted}regex used for validation is '${pattern}')`;
}

/** API servers count bytes, and call them characters where names of objects are concerned. */
type Unit = 'bytes' | 'characters';

function tooLong(text: string, max: number, unit: Unit): readonly string[] {
  return Buffer.byteLength(text, 'utf8') > max ? [`must be no more than ${max} ${unit}`] : [];
}

/** Lower case letters, digits and hyphens, the latter not at the ends. Tested by hand: labels may be long. */
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

/** A name with a domain before it, as keys of labels have. */
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

/** A name that is to be continued may end in a hyphen: API servers look at it without its last two characters. */
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

/** Whole groups of four; an empty string has none. */
function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function uriProblems(text: string): readonly string[] {
  const problem = requestUriProblem(text);
  return problem === undefined ? [] : [problem];
}

/** Formats by the names that expressions have them by. */
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

/** Whether a name is one of a namespace. */
export function isNamespaceName(text: string): boolean {
  return labelProblems(text).length === 0;
}

/** Whether a name is one of a service account. */
export function isServiceAccountName(text: string): boolean {
  return objectNameProblems(text).length === 0;
}
