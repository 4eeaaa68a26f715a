import { findCondition } from '../../resources/index.ts';
import { argumentOf, controllerOf } from './controller-arguments.ts';
import { type Finding, finding } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

/** Network providers whose support of NetworkPolicies is not known, not as declared, or not reported by the account that is named. */
export function checkNetworkProviders(snapshot: Snapshot): readonly Finding[] {
  const controller = controllerOf(snapshot);
  if (controller === undefined || argumentOf(controller, '--network-policy-status') === 'false') {
    return [];
  }
  return snapshot.networkProviders.flatMap(({ metadata: { name = '' }, status }) => {
    const stalled = findCondition(status?.conditions, 'Stalled');
    return stalled?.status === 'True'
      ? [finding('NetworkProviderUnknown', `networkpolicyprovider/${name}`, stalled.message, ACTION)]
      : [];
  });
}

const ACTION = 'Correct its spec: docs/network-policy.md explains it.';
