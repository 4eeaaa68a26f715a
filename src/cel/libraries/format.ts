import { CelOptional, matchCost } from '../evaluate/index.ts';
import type { FunctionDeclaration, Library } from '../model/library.ts';
import { listOf, optionalOf, STRING, struct } from '../model/type.ts';
import { fixed, matchEstimate, rangeOf, sizeOfArgument } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { NAMED_FORMATS, NamedFormat } from './named-formats.ts';

/** The type of named formats. */
const FORMAT: ReturnType<typeof struct> = struct('kubernetes.NamedFormat');

/** Maximum length of a format's regular expression, which estimates assume. */
const MAX_PATTERN_LENGTH = 128;

/** What the formats `format.<name>()` are for. */
const FORMATTED_STRINGS: ReadonlyMap<string, string> = new Map([
  ['dns1123Label', 'object names without dots, such as names of namespaces.'],
  ['dns1123Subdomain', 'most object names.'],
  ['dns1035Label', 'names of Services.'],
  ['qualifiedName', 'keys of labels and annotations.'],
  ['dns1123LabelPrefix', '`generateName` for names without dots.'],
  ['dns1123SubdomainPrefix', '`generateName` for most objects.'],
  ['dns1035LabelPrefix', '`generateName` for Services.'],
  ['labelValue', 'values of labels.'],
  ['uri', 'absolute URLs and paths, as in `isURL`.'],
  ['uuid', 'UUIDs, with or without hyphens.'],
  ['byte', 'base64.'],
  ['date', 'dates such as `2021-01-31`.'],
  ['datetime', 'timestamps such as `2021-01-31T12:00:00Z`.'],
]);

function constant(name: string, format: NamedFormat): FunctionDeclaration {
  const summary = `The format of ${FORMATTED_STRINGS.get(name) ?? `${name}.`}`;
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
      'The format with this name, or `optional.none()`.',
      ["format.named('uuid').hasValue()", 'true'],
      [global('format-named', [STRING], optionalOf(FORMAT), named, fixed(1))],
    ),
    describe(
      'validate',
      'The errors of a string, or `optional.none()` if it has the format.',
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
