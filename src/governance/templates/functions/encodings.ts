import { createHash } from 'node:crypto';
import { parseYaml, YamlSyntaxError } from '../../../values/yaml/index.ts';
import { GoFloat, jsonText, YAML_V3, yamlText } from '../../../go/index.ts';
import { failTemplate, TemplateError } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { isBase64, isNestedDeeper, parseJson } from '../../../values/index.ts';
import type { JsonValue } from '../../../values/index.ts';
import { textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';
import { goValueOf, jsonOf } from '../rendering/value-conversion.ts';

function decoded(text: string): string {
  // As Go, which ignores line breaks.
  const base64 = text.replace(/[\r\n]/g, '');
  return isBase64(base64) ? Buffer.from(base64, 'base64').toString() : failTemplate('not valid Base64');
}

/** Deepest JSON that is parsed: deeper values have no use in an object. */
const MAX_NESTING = 100;

function readJson(text: string, { meter }: Rendering): GoValue {
  if (isNestedDeeper(text, MAX_NESTING)) {
    failTemplate(`JSON is nested deeper than ${MAX_NESTING} levels`);
  }
  meter.steps(text.length / 16);
  try {
    return goValueOf(parseJson(text), meter, (number) => new GoFloat(number));
  } catch (error) {
    if (error instanceof SyntaxError) {
      // The message of the error has an excerpt of the text, which may be secret.
      return failTemplate('not valid JSON');
    }
    throw error;
  }
}

/** The first document; empty text is nil. */
function readYaml(text: string, rendering: Rendering): GoValue {
  rendering.meter.steps(text.length / 4);
  let documents: readonly unknown[];
  try {
    documents = parseYaml(text);
  } catch (error) {
    if (error instanceof YamlSyntaxError) {
      return failTemplate('not valid YAML');
    }
    throw error;
  }
  return goValueOf(documents[0] ?? null, rendering.meter);
}

function withoutHtmlEscapes(json: string): string {
  return json.replaceAll('\\u003c', '<').replaceAll('\\u003e', '>').replaceAll('\\u0026', '&');
}

/** JSON keys in the order of Go's encoder. */
function ordered(value: JsonValue): JsonValue {
  return parseJson(jsonText(value)) as JsonValue;
}

/** A function that writes a value as text. */
function writing(write: (value: JsonValue) => string): GovernanceFunction {
  return counted(1, 1, ([value], { meter }) => {
    const text = write(jsonOf(value, meter));
    meter.chars(text.length);
    return text;
  });
}

function reading(read: (text: string, rendering: Rendering) => GoValue): GovernanceFunction {
  return counted(1, 1, (operands, rendering) => read(textOperand(operands, 0), rendering));
}

/** Sprig's fromJson has no value for a text that is not JSON. */
const lenientJson = reading((text, rendering) => {
  try {
    return readJson(text, rendering);
  } catch (error) {
    if (error instanceof TemplateError && error.code === 'template-failed') {
      return null;
    }
    throw error;
  }
});

const toJson = writing(jsonText);
const toRawJson = writing((value) => withoutHtmlEscapes(jsonText(value)));
const toPrettyJson = writing((value) => JSON.stringify(ordered(value), undefined, 2));
const toYaml = writing((value) => yamlText(value, YAML_V3).replace(/\n$/, ''));
const strictJson = reading(readJson);
const fromYaml = reading(readYaml);

const encoded: GovernanceFunction = counted(1, 1, (operands, { meter }) => {
  const text = textOperand(operands, 0);
  meter.chars(text.length);
  return Buffer.from(text).toString('base64');
});

const base64Decoded: GovernanceFunction = counted(1, 1, (operands) => decoded(textOperand(operands, 0)));

function hashing(algorithm: string): GovernanceFunction {
  return counted(1, 1, (operands) => createHash(algorithm).update(textOperand(operands, 0)).digest('hex'));
}

export const ENCODING_FUNCTIONS: readonly FunctionRow[] = [
  ['base64enc', encoded],
  ['base64dec', base64Decoded],
  ['b64enc', encoded],
  ['b64dec', base64Decoded],
  ['toJson', toJson],
  ['toJSON', toJson],
  ['mustToJson', toJson],
  ['mustToJSON', toJson],
  ['toRawJson', toRawJson],
  ['toRawJSON', toRawJson],
  ['mustToRawJson', toRawJson],
  ['mustToRawJSON', toRawJson],
  ['toPrettyJson', toPrettyJson],
  ['mustToPrettyJson', toPrettyJson],
  ['fromJson', lenientJson],
  ['fromJSON', lenientJson],
  ['mustFromJson', strictJson],
  ['mustFromJSON', strictJson],
  ['toYaml', toYaml],
  ['toYAML', toYaml],
  ['fromYaml', fromYaml],
  ['fromYAML', fromYaml],
  ['sha1sum', hashing('sha1')],
  ['sha256sum', hashing('sha256')],
  ['sha512sum', hashing('sha512')],
];
