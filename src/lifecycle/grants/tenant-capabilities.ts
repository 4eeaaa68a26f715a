import { ANNOTATIONS, type PolicyServerObject } from '../../resources/index.ts';

/**
 * Patterns of the host capabilities that policies of namespaces may use on a PolicyServer: those that its spec names. Without
 * the field: none; all, as in Kubewarden, where the PolicyServer was taken over from it.
 */
export function tenantCapabilities({
  metadata,
  spec,
}: Pick<PolicyServerObject, 'metadata' | 'spec'>): readonly string[] {
  return spec.namespacedPoliciesCapabilities ?? (isTakenOver({ metadata }) ? ['*'] : []);
}

/** Whether a PolicyServer was another controller's before. */
export function isTakenOver({ metadata }: Pick<PolicyServerObject, 'metadata'>): boolean {
  return metadata.annotations?.[ANNOTATIONS.takeOver] === 'true';
}
