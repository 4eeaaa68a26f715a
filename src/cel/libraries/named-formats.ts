import { isDate, isDateTime } from '../../go/index.ts';
import {
  dns1035LabelProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  labelValueProblems,
  qualifiedNameProblems,
} from '../../names/index.ts';
import type { CelValue } from '../model/value.ts';
import { LibraryValue } from '../model/library-value.ts';
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

/** Lengths of the regular expressions for date-times and UUIDs in API servers. */
const DATE_TIME_PATTERN_LENGTH = 71;
const UUID_PATTERN_LENGTH = 70;

/** The messages of Kubernetes 1.37. */
const labelKeyProblems: Validate = (text) =>
  qualifiedNameProblems(text, { subject: 'a valid label key', unit: 'bytes' });

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
    dns1123Label: new NamedFormat('DNS1123Label', 30, dnsLabelProblems),
    dns1123Subdomain: new NamedFormat('DNS1123Subdomain', 60, dnsSubdomainProblems),
    dns1035Label: new NamedFormat('DNS1035Label', 30, dns1035LabelProblems),
    qualifiedName: new NamedFormat('QualifiedName', 60, labelKeyProblems),
    dns1123LabelPrefix: new NamedFormat('DNS1123LabelPrefix', 30, asPrefix(dnsLabelProblems)),
    dns1123SubdomainPrefix: new NamedFormat('DNS1123SubdomainPrefix', 60, asPrefix(dnsSubdomainProblems)),
    dns1035LabelPrefix: new NamedFormat('DNS1035LabelPrefix', 30, asPrefix(dns1035LabelProblems)),
    labelValue: new NamedFormat('LabelValue', 40, (text) => labelValueProblems(text, 'bytes')),
    uri: new NamedFormat('URI', 1103, uriProblems),
    uuid: new NamedFormat('uuid', UUID_PATTERN_LENGTH, onlyIf(isUuid, 'does not match the UUID format')),
    byte: new NamedFormat('byte', 84, onlyIf(isBase64, 'invalid base64')),
    date: new NamedFormat('date', DATE_TIME_PATTERN_LENGTH, onlyIf(isDate, 'invalid date')),
    datetime: new NamedFormat('datetime', DATE_TIME_PATTERN_LENGTH, onlyIf(isDateTime, 'invalid datetime')),
  }),
);

/** Whether a text is a valid namespace name. */
export function isNamespaceName(text: string): boolean {
  return dnsLabelProblems(text).length === 0;
}

/** Whether a text is a valid service account name. */
export function isServiceAccountName(text: string): boolean {
  return dnsSubdomainProblems(text).length === 0;
}
