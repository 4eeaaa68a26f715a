// Finds quantities, such as `500m` and `1Gi`, that are compared as texts or converted to numbers.
import { type Expression, expressionsOf } from '../../../cel/index.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const ORDER = new Set(['_<_', '_<=_', '_>_', '_>=_']);
/** On texts, these are never defined. */
const ARITHMETIC = new Set(['_-_', '_*_', '_/_', '_%_', '-_']);
const CONVERSIONS = new Set(['int', 'uint', 'double']);

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

/** Quantities that are compared as texts or converted to numbers. */
export function quantityLint(programs: Programs, variables: Variables): readonly LintFinding[] {
  return [...programs].flatMap(([field, program]) =>
    [...expressionsOf(program.checked.expression)].flatMap((node) => {
      const misused = misusedQuantity(node, variables);
      if (misused === undefined) {
        return [];
      }
      const text = program.text.slice(misused.start, misused.end);
      return [findingAt('quantity', field, program, misused.start, messageOf(node, text))];
    }),
  );
}

function messageOf(node: Expression, text: string): string {
  const name = node.kind === 'call' ? node.function : '';
  return CONVERSIONS.has(name)
    ? `${text} is a quantity, such as "500m" or "1Gi", and ${name}() fails for most of them: write quantity(${text}), and compare it by isGreaterThan, isLessThan or compareTo`
    : `${text} is a quantity, such as "500m" or "1Gi", and compared as a text ("9" is more than "10"): write quantity(${text}).compareTo(quantity("2")) <= 0`;
}

function misusedQuantity(node: Expression, variables: Variables): Expression | undefined {
  if (node.kind !== 'call' || node.target !== undefined) {
    return undefined;
  }
  const isMisuse = ORDER.has(node.function) || ARITHMETIC.has(node.function) || CONVERSIONS.has(node.function);
  return isMisuse ? node.args.find((arg) => isQuantity(arg, variables)) : undefined;
}

function isQuantity(node: Expression, variables: Variables): boolean {
  const fields = fieldChain(node, variables)?.fields ?? [];
  const key = fields.at(-1) ?? '';
  const map = fields.at(-2) ?? '';
  const isOfContainer = fields.at(-3) === 'resources' && (map === 'limits' || map === 'requests');
  return (
    isOfContainer || (QUANTITY_MAPS.has(map) && RESOURCE_NAME.test(key)) || (key === 'sizeLimit' && map === 'emptyDir')
  );
}
