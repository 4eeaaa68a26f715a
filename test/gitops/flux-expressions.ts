// `healthCheckExprs` of a Flux Kustomization, evaluated as Flux does.
// https://github.com/fluxcd/flux2/tree/main/rfcs/0009-custom-health-checks
import { createEnvironment, DYN } from '../../src/cel/index.ts';
import type { CelValue } from '../../src/cel/index.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';

export interface HealthExpressions {
  readonly apiVersion: string;
  readonly kind: string;
  readonly inProgress?: string;
  readonly failed?: string;
  readonly current: string;
}

/** Expressions see the fields of the object as variables. */
const environment = createEnvironment({
  variables: { apiVersion: DYN, kind: DYN, metadata: DYN, spec: DYN, status: DYN },
});

/** What Flux says of an object. A generation that was not observed is in progress, whatever expressions say. */
export function fluxHealth(expressions: HealthExpressions, object: KubernetesObject): string {
  const { observedGeneration } = (object['status'] ?? {}) as { observedGeneration?: number };
  if (observedGeneration !== undefined && observedGeneration !== object.metadata.generation) {
    return 'InProgress';
  }
  const holds = (expression: string | undefined): boolean => {
    if (expression === undefined) {
      return false;
    }
    const bindings = structuredClone(object) as unknown as Record<string, CelValue>;
    return environment.compile(expression).evaluate(bindings, { budget: 1_000_000 }).value === true;
  };
  if (holds(expressions.inProgress)) {
    return 'InProgress';
  }
  return holds(expressions.failed) ? 'Failed' : holds(expressions.current) ? 'Current' : 'InProgress';
}
