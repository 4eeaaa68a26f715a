import type { SinglePolicyDefinition } from '../../../engine/index.ts';

/** A policy of a module, with a version in its settings. */
export function versioned(id: string, module: string, version: string): SinglePolicyDefinition {
  return {
    kind: 'policy',
    id,
    mode: 'protect',
    allowedToMutate: false,
    module,
    settingsJson: JSON.stringify({ version }),
    contextAwareResources: [],
    hostCapabilities: [],
    failurePolicy: 'Fail',
  };
}
