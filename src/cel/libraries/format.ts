import { CelOptional, matchCost } from '../evaluate/index.ts';
import type { FunctionDeclaration, Library } from '../library.ts';
import { listOf, optionalOf, STRING, struct } from '../type.ts';
import { fixed, matchEstimate, rangeOf, sizeOfArgument } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { NAMED_FORMATS, NamedFormat } from './named-formats.ts';

/** The type of named formats. */
export const FORMAT: ReturnType<typeof struct> = struct('kubernetes.NamedFormat');

/** Maximum length of a format's regular expression, which estimates assume. */
const MAX_PATTERN_LENGTH = 128;

/** Descriptions of the functions `format.<name>()`. */
const MEANINGS: ReadonlyMap<string, string> = new Map([
  ['dns1123Label', 'Names of most objects without dots.'],
  ['dns1123Subdomain', 'Names of most objects.'],
  ['dns1035Label', 'Names of services.'],
  ['qualifiedName', 'Keys of labels and annotations.'],
  ['dns1123LabelPrefix', 'A `generateName` for names without dots.'],
  ['dns1123SubdomainPrefix', 'A `generateName` for most objects.'],
  ['dns1035LabelPrefix', 'A `generateName` for services.'],
  ['labelValue', 'Values of labels.'],
  ['uri', 'Absolute URLs and paths, as isURL takes them.'],
  ['uuid', 'UUIDs, with or without hyphens.'],
  ['byte', 'Base64.'],
  ['date', 'Dates such as `2021-01-31`.'],
  ['datetime', 'Dates with times such as `2021-01-31T12:00:00Z`.'],
]);

function constant(name: string, format: NamedFormat): FunctionDeclaration {
  const summary = `A format: ${MEANINGS.get(name) ?? name}`;
  return describe(
    `format.${name}`,
    summary,
    [`format.${name}().validate('?').hasValue()`, 'true'],
    [global(`format.${name}`, [], FORMAT, () => format)],
  );
}

/** Formats of names and other strings in Kubernetes objects. */
export const FORMAT_LIBRARY: Library = {
  name: 'Formats',
  since: 31,
  types: [FORMAT],
  functions: [
    ...Array.from(NAMED_FORMATS, ([name, format]) => constant(name, format)),
    describe(
      'format.named',
      'The format of a name, none when there is no such format.',
      ["format.named('uuid').hasValue()", 'true'],
      [global('format-named', [STRING], optionalOf(FORMAT), named, fixed(1))],
    ),
    describe(
      'validate',
      'What is wrong with a string, none when it has the format.',
      ["format.dns1123Label().validate('my-pod').hasValue()", 'false'],
      [
        member('format-validate', [FORMAT, STRING], optionalOf(listOf(STRING)), validate, {
          cost: (args) => {
            const format = args[0];
            return format instanceof NamedFormat ? matchCost(sizeOfArgument(args, 1), format.patternLength) : 1;
          },
          estimate: (sizes) => matchEstimate(rangeOf(sizes, 1), MAX_PATTERN_LENGTH),
        }),
      ],
    ),
  ],
};

function named(name: string): CelOptional {
  return new CelOptional(NAMED_FORMATS.get(name));
}

function validate(format: NamedFormat, text: string): CelOptional {
  const problems = format.validate(text);
  return problems.length === 0 ? CelOptional.NONE : new CelOptional(problems);
}
