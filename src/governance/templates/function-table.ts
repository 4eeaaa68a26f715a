import type { TemplateFunctions } from '../../go/templates/index.ts';
import { CLUSTER_FUNCTIONS } from './functions/cluster.ts';
import { DATE_FUNCTIONS } from './functions/dates.ts';
import { ENCODING_FUNCTIONS } from './functions/encodings.ts';
import { LIST_FUNCTIONS } from './functions/lists.ts';
import { LOGIC_FUNCTIONS } from './functions/logic.ts';
import { MAP_FUNCTIONS } from './functions/maps.ts';
import { NUMBER_FUNCTIONS } from './functions/numbers.ts';
import { PATTERN_FUNCTIONS } from './functions/patterns.ts';
import { STRING_FUNCTIONS } from './functions/strings.ts';
import { VERSION_FUNCTIONS } from './functions/versions.ts';
import { functionTable } from './rendering/rendering.ts';
import type { GovernanceFunction, Rendering } from './rendering/rendering.ts';

/** All functions besides Go's own. docs/governance-templates.md lists them. */
export const GOVERNANCE_FUNCTIONS: ReadonlyMap<string, GovernanceFunction> = functionTable([
  ...CLUSTER_FUNCTIONS,
  ...DATE_FUNCTIONS,
  ...ENCODING_FUNCTIONS,
  ...LIST_FUNCTIONS,
  ...LOGIC_FUNCTIONS,
  ...MAP_FUNCTIONS,
  ...NUMBER_FUNCTIONS,
  ...PATTERN_FUNCTIONS,
  ...STRING_FUNCTIONS,
  ...VERSION_FUNCTIONS,
]);

/** The functions, bound to a rendering. */
export function functionsFor(rendering: Rendering): TemplateFunctions {
  return new Map(
    Array.from(GOVERNANCE_FUNCTIONS, ([name, call]) => [name, (operands) => call(operands, rendering)] as const),
  );
}
