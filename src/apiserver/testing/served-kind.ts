import { apiVersionOf } from '../../resources/index.ts';
import { SERVED_KINDS } from '../builtin-kinds/served-kinds.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

/** The definition of a builtin kind: `servedKind('apps/v1', 'Deployment')`. Undefined when it is not served. */
export function servedKind(apiVersion: string, kind: string): ResourceDefinition | undefined {
  return SERVED_KINDS.find((served) => apiVersionOf(served) === apiVersion && served.kind === kind);
}
