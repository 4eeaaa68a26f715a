// YAML as Rego has it: exact numbers as RegoNumber, values as Rego's, and its own bounds, where src/values/yaml reads what users write
// as kubectl does. Only the parser is the same.
import { compareNaturally, formatFloat, yamlQuoted } from '../../../go/index.ts';
import {
  defineMappingTag,
  defineScalarTag,
  defineSequenceTag,
  FAILSAFE_SCHEMA,
  loadAll,
  mergeTag,
  NOT_RESOLVED,
} from 'js-yaml';
import { FUEL_PER_CHAR, operand, stringOperand, undefinedBecause } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { BuiltinError } from './errors.ts';
import { decimalOf, integerOf, RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';
import { regoText } from './value-text.ts';

/** Maximum nesting; Kubernetes manifests are far below. */
const MAX_DEPTH = 200;

/**
 * Maximum number of aliases in a document. Each can multiply the document's size; the size itself is limited when it is
 * written.
 */
const MAX_ALIASES = 1000;

const NULLS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
]);

/** YAML 1.1 booleans, which are strings here, but are quoted when written. */
const OLD_BOOLEANS = /^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$/;
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const SPECIAL_FLOAT = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** Of 64 bits in base 2, with the prefix. Longer ones are no integers of YAML, and take more than linear time to convert. */
const MAX_INTEGER_DIGITS = 66;
const UINT64_LIMIT = 2n ** 64n;

/** The value of a plain scalar in go-yaml: decimal, 0x, 0o, 0b, a leading zero for octal, underscores. */
function yamlNumber(source: string): RegoNumber | undefined {
  if (!/^[-+.0-9]/.test(source)) {
    return undefined;
  }
  const text = source.replaceAll('_', '');
  const integer = yamlInteger(text);
  if (integer !== undefined && integer < UINT64_LIMIT && integer >= -(UINT64_LIMIT / 2n)) {
    return RegoNumber.of(integer);
  }
  // Go's float parser needs a digit, not only a point or an exponent.
  if (!FLOAT.test(text)) {
    return undefined;
  }
  const float = Number(text);
  return Number.isFinite(float) ? RegoNumber.of(Object.is(float, -0) ? 0 : float) : undefined;
}

function yamlInteger(text: string): bigint | undefined {
  const [, sign = '', digits = ''] = /^([-+]?)([0-9][0-9a-zA-Z]*)$/.exec(text) ?? [];
  const octal = /^0([0-7]+)$/.exec(digits);
  const isNumber = /^(?:0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(digits);
  if (octal === null && !isNumber) {
    return undefined;
  }
  const significant = octal === null ? digits : `0o${(octal[1] ?? '0').replace(/^0+(?=.)/, '')}`;
  if (significant.length > MAX_INTEGER_DIGITS) {
    return undefined;
  }
  const magnitude = BigInt(significant);
  return sign === '-' ? -magnitude : magnitude;
}

const TAG = 'tag:yaml.org,2002:';
const never = (): boolean => false;

const nullTag = defineScalarTag<RegoValue>(`${TAG}null`, {
  implicit: true,
  resolve: (source) => (NULLS.has(source) ? null : NOT_RESOLVED),
  identify: never,
});
const boolTag = defineScalarTag<RegoValue>(`${TAG}bool`, {
  implicit: true,
  resolve: (source) => BOOLEANS.get(source) ?? NOT_RESOLVED,
  identify: never,
});
const intTag = defineScalarTag<RegoValue>(`${TAG}int`, {
  implicit: true,
  resolve: (source) => yamlNumber(source) ?? NOT_RESOLVED,
  identify: never,
});
const floatTag = defineScalarTag<RegoValue>(`${TAG}float`, {
  implicit: true,
  resolve: (source) => {
    if (SPECIAL_FLOAT.test(source)) {
      return undefinedBecause('yaml: JSON has no infinities');
    }
    return yamlNumber(source) ?? NOT_RESOLVED;
  },
  identify: never,
});
const binaryTag = defineScalarTag<RegoValue>(`${TAG}binary`, {
  resolve: (source) => Buffer.from(source, 'base64').toString(),
  identify: never,
});
// Both collections are finalized in a separate step, which makes the parser reject values that contain themselves.
const sequenceTag = defineSequenceTag<RegoValue[], readonly RegoValue[]>(`${TAG}seq`, {
  create: () => [],
  addItem: (items, item) => {
    items.push(item as RegoValue);
  },
  finalize: (items) => items,
  identify: never,
});
const mapTag = defineMappingTag<Map<string, RegoValue>, RegoObject>(`${TAG}map`, {
  create: () => new Map<string, RegoValue>(),
  addPair: (map, key, value) => {
    map.set(keyText(key as RegoValue), value as RegoValue);
    return '';
  },
  has: (map, key) => map.has(keyText(key as RegoValue)),
  keys: (object) => [...object].map(([key]) => key),
  get: (object, key) => object.get(key as RegoValue),
  finalize: (map) => new RegoObject(map),
  identify: never,
});

const SCHEMA = FAILSAFE_SCHEMA.withTags(sequenceTag, mapTag, nullTag, boolTag, intTag, floatTag, binaryTag, mergeTag);

function keyText(key: RegoValue): string {
  if (typeof key === 'string' || typeof key === 'boolean') {
    return String(key);
  }
  return key instanceof RegoNumber ? key.text : undefinedBecause('yaml: a key must be a scalar');
}

/** The first document as a Rego value. The other documents must be well-formed too. */
function parseYaml(text: string): RegoValue {
  if (/^%YAML(?![ \t]+1\.1\b)/.test(text)) {
    undefinedBecause('yaml: only version 1.1 is supported, as in go-yaml');
  }
  let documents: unknown[];
  try {
    documents = loadAll(text, { schema: SCHEMA, json: true, maxDepth: MAX_DEPTH, maxAliases: MAX_ALIASES });
  } catch (error) {
    return error instanceof BuiltinError
      ? undefinedBecause(error.message, error)
      : undefinedBecause('not valid YAML', error);
  }
  return (documents[0] ?? null) as RegoValue;
}

const unmarshal: OpaBuiltin = (operands, context) => {
  const text = stringOperand(operands, 0);
  context.charge(text.length * FUEL_PER_CHAR);
  return parseYaml(text);
};

const isValid: OpaBuiltin = (operands, context) => {
  const text = operand(operands, 0);
  if (typeof text !== 'string') {
    return false;
  }
  context.charge(text.length * FUEL_PER_CHAR);
  try {
    // With aliases, a value can be larger as text than in memory: writing it applies the limit.
    regoText(parseYaml(text));
    return true;
  } catch (error) {
    if (error instanceof BuiltinError) {
      return false;
    }
    throw error;
  }
};

const marshal: OpaBuiltin = (operands) => `${block(operand(operands, 0), '')}\n`;

/** Writes a value; the first line continues the current line, the others are indented. */
function block(value: RegoValue, indent: string): string {
  if (value instanceof RegoObject) {
    return value.size === 0 ? '{}' : mapping(value, indent);
  }
  if (typeof value === 'string') {
    return scalarText(value, indent, false);
  }
  if (value === null || typeof value === 'boolean') {
    return String(value);
  }
  if (value instanceof RegoNumber) {
    return numberText(value.text);
  }
  const items = isArray(value) ? value : value.sorted();
  return items.length === 0 ? '[]' : items.map((item) => `- ${block(item, `${indent}  `)}`).join(`\n${indent}`);
}

/** Keys with more UTF-8 bytes are written with a question mark. */
const MAX_SIMPLE_KEY_BYTES = 128;

function mapping(object: RegoObject, indent: string): string {
  const entries = [...object].map(([key, value]): [string, RegoValue] => [
    typeof key === 'string' ? key : regoText(key),
    value,
  ]);
  entries.sort(([a], [b]) => compareNaturally(a, b, true));
  const deeper = `${indent}  `;
  const lines = entries.map(([key, value]) => {
    if (key.includes('\n') || Buffer.byteLength(key) > MAX_SIMPLE_KEY_BYTES) {
      return `? ${scalarText(key, deeper, false)}\n${indent}: ${block(value, deeper)}`;
    }
    return `${scalarText(key, indent, true)}:${isFilled(value) ? `\n${deeper}` : ' '}${block(value, deeper)}`;
  });
  return lines.join(`\n${indent}`);
}

/** Whether a value is a collection that is written on several lines. */
function isFilled(value: RegoValue): boolean {
  if (isArray(value)) {
    return value.length > 0;
  }
  return (value instanceof RegoObject || value instanceof RegoSet) && value.size > 0;
}

/** As in go-yaml, integers within 64 bits are kept, and all other numbers become the shortest float. */
function numberText(text: string): string {
  const integer = /[.eE]/.test(text) ? undefined : integerOf(text);
  if (integer !== undefined && integer < UINT64_LIMIT && integer >= -(UINT64_LIMIT / 2n)) {
    return String(integer);
  }
  const float = Number(text);
  return Number.isFinite(float)
    ? formatFloat(float, 'g')
    : undefinedBecause(`yaml.marshal: ${decimalOf(text).point} digits are too many`);
}

function scalarText(text: string, indent: string, isKey: boolean): string {
  if (text.includes('\n') && !isKey && isBlockAllowed(text)) {
    return literal(text, indent);
  }
  if (LINE_SEPARATOR.test(text) && !text.includes('\n') && !UNPRINTABLE.test(text)) {
    return singleQuoted(text);
  }
  const isPlainAllowed =
    !text.includes('\n') && isStringWhenPlain(text) && !OLD_BOOLEANS.test(text) && !BASE_60.test(text);
  if (!isPlainAllowed || UNPRINTABLE.test(text)) {
    return yamlQuoted(text.toWellFormed());
  }
  if (!PLAIN_FORBIDDEN.test(text)) {
    return text;
  }
  return text.includes('\t') ? yamlQuoted(text.toWellFormed()) : singleQuoted(text);
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function isStringWhenPlain(text: string): boolean {
  return (
    !NULLS.has(text) &&
    !BOOLEANS.has(text) &&
    !SPECIAL_FLOAT.test(text) &&
    yamlNumber(text) === undefined &&
    !TIMESTAMP.test(text)
  );
}

const TIMESTAMP = /^\d{4}-\d{1,2}-\d{1,2}(?:(?:[Tt]|[ ])\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/** Plain scalars that would have another meaning: indicators, comments, spaces at the ends. */
const PLAIN_FORBIDDEN = /^(?:---|\.\.\.)|^[#,[\]{}&*!|>'"%@`]|^[-?:](?=[ \t]|$)|:(?=[ \t]|$)|[ \t]#|^[ \t]|[ \t]$|\t/;
// oxlint-disable-next-line no-control-regex -- these are the characters that YAML must escape
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u0084\u0086-\u009f\ud800-\udfff\ufeff\ufffe\uffff]/;
/** Line breaks of YAML 1.1 besides the usual ones. */
const LINE_SEPARATOR = /[\u0085\u2028\u2029]/;

function isBlockAllowed(text: string): boolean {
  return !UNPRINTABLE.test(text) && !/[ \t](?:\n|$)/.test(text) && !/\t/.test(text);
}

function literal(text: string, indent: string): string {
  const hint = /^[ \n]/.test(text) ? '2' : '';
  const chomp = text.endsWith('\n\n') || text === '\n' ? '+' : text.endsWith('\n') ? '' : '-';
  const body = text.replace(/\n$/, '');
  const base = indent === '' ? '  ' : indent;
  return `|${hint}${chomp}\n${body
    .split('\n')
    .map((line) => (line === '' ? '' : base + line))
    .join('\n')}`;
}

export const yamlBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['yaml.marshal', marshal],
  ['yaml.unmarshal', unmarshal],
  ['yaml.is_valid', isValid],
];
