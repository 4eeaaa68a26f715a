// Finds quantities, such as `500m` and `1Gi`, that are compared as texts or converted to numbers.
import { literalTexts } from './constant-text.ts';
import { type Expression, expressionsOf, type Program } from '../../../cel/index.ts';
import { QUANTITY_FORMAT, type Schema } from '../../../resources/index.ts';
import { canonicalQuantity, quantityOf } from '../../../resources/decoding/index.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { fieldSchema, macroVariables } from './field-schema.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const ORDER = new Set(['_<_', '_<=_', '_>_', '_>=_']);
/** On texts, these are never defined. */
const ARITHMETIC = new Set(['_-_', '_*_', '_/_', '_%_', '-_']);
const CONVERSIONS = new Set(['int', 'uint', 'double']);
const EQUALITY = new Set(['_==_', '_!=_', '@in']);
/** What is done to a text before it is compared or converted. */
const OF_TEXTS = new Set(['lowerAscii', 'replace', 'substring', 'trim', 'upperAscii']);
const CASTS = new Set(['dyn', 'string']);

/** Fields whose values are quantities by the name of a resource. */
const QUANTITY_MAPS: ReadonlySet<string> = new Set([
  'allocatable',
  'allocatedResources',
  'capacity',
  'default',
  'defaultRequest',
  'hard',
  'limits',
  'max',
  'maxLimitRequestRatio',
  'min',
  'overhead',
  'podFixed',
  'requests',
  'used',
]);
/** Names of resources of Kubernetes, also in quotas: `requests.cpu`. Names of others have a `/`. */
const RESOURCE_NAME =
  /^(?:(?:requests|limits)\.)?(?:cpu|memory|storage|ephemeral-storage|hugepages-\w+|[a-z0-9.-]+\.[a-z]+\/[\w.-]+)$/u;

/** What is known of the fields that an expression reads. */
interface Scope {
  readonly variables: Variables;
  readonly macros: ReturnType<typeof macroVariables>;
  /** Of the objects that the policy matches, as far as they are known. */
  readonly schemas: readonly Schema[];
}

/** Quantities that are compared as texts or converted to numbers. @param schemas of the objects that the policy matches */
export function quantityLint(
  programs: Programs,
  variables: Variables,
  schemas: readonly Schema[] = [],
): readonly LintFinding[] {
  return [...programs].flatMap(([field, program]) => {
    const { expression } = program.checked;
    const scope = { variables, macros: macroVariables(expression), schemas };
    return [...expressionsOf(expression)].flatMap((node) => {
      const found = misuseOf(node, program, scope);
      return found === undefined ? [] : [findingAt('quantity', field, program, found.node.start, found.message)];
    });
  });
}

interface Misuse {
  readonly node: Expression;
  readonly message: string;
}

function misuseOf(node: Expression, { text }: Program, scope: Scope): Misuse | undefined {
  if (node.kind !== 'call' || node.target !== undefined) {
    return undefined;
  }
  const args = node.args.map(withoutTextFunctions);
  const quantity = args.find((arg) => isQuantity(arg, scope));
  if (quantity === undefined) {
    return undefined;
  }
  const what = text.slice(quantity.start, quantity.end);
  if (CONVERSIONS.has(node.function)) {
    return {
      node: quantity,
      message: `${what} is a quantity, such as "500m" or "1Gi", and ${node.function}() fails for most of them: write quantity(${what}), and compare it by isGreaterThan, isLessThan or compareTo`,
    };
  }
  if (ORDER.has(node.function) || ARITHMETIC.has(node.function)) {
    return {
      node: quantity,
      message: `${what} is a quantity, such as "500m" or "1Gi", and compared as a text ("9" is more than "10"): write quantity(${what}).compareTo(quantity("2")) <= 0`,
    };
  }
  const isCanonical = EQUALITY.has(node.function) && isQuantityBySchema(quantity, scope);
  const other = isCanonical ? node.args.flatMap(literalTexts).find(isOtherwiseWritten) : undefined;
  return other === undefined
    ? undefined
    : {
        node: quantity,
        message: `${what} is a quantity, which API servers write as ${JSON.stringify(canonicalQuantity(other))}, never ${JSON.stringify(other)}: they are never equal. Write quantity(${what}).compareTo(quantity(${JSON.stringify(other)})) == 0`,
      };
}

/** Whether a text is a quantity in another form than the one that API servers give it. */
function isOtherwiseWritten(text: string): boolean {
  return quantityOf(text) !== undefined && canonicalQuantity(text) !== text;
}

function isQuantity(node: Expression, scope: Scope): boolean {
  return isQuantityByName(node, scope.variables) || isQuantityBySchema(node, scope);
}

function withoutTextFunctions(node: Expression): Expression {
  let current = node;
  for (;;) {
    const inner: Expression | undefined =
      current.kind !== 'call'
        ? undefined
        : OF_TEXTS.has(current.function)
          ? current.target
          : CASTS.has(current.function)
            ? current.args[0]
            : undefined;
    if (inner === undefined) {
      return current;
    }
    current = inner;
  }
}

function isQuantityBySchema(node: Expression, { variables, macros, schemas }: Scope): boolean {
  return schemas.some((schema) => fieldSchema(node, variables, macros, schema)?.format === QUANTITY_FORMAT);
}

function isQuantityByName(node: Expression, variables: Variables): boolean {
  const fields = fieldChain(node, variables)?.fields ?? [];
  const key = fields.at(-1) ?? '';
  const map = fields.at(-2) ?? '';
  const isOfContainer = fields.at(-3) === 'resources' && (map === 'limits' || map === 'requests');
  return (
    isOfContainer || (QUANTITY_MAPS.has(map) && RESOURCE_NAME.test(key)) || (key === 'sizeLimit' && map === 'emptyDir')
  );
}
