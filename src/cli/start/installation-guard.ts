// The ValidatingAdmissionPolicies of an installation, for the cluster of `portcullis start`.
import type { AdmissionGuard } from '../../apiserver/index.ts';
import { createManifestsGuest } from '../../engine/guests/index.ts';
import {
  accessGuard,
  annotationGuard,
  exceptionStatusGuard,
  recordGuards,
  withoutComments,
} from '../../installation/objects/index.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';

/** The part of a ValidatingAdmissionPolicy that names what it is for. A binding has none. */
interface Guarding {
  readonly spec: { readonly matchConstraints?: { readonly resourceRules: readonly GuardedResources[] } };
}

interface GuardedResources {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
}

/** Evaluates the policies that limit in an installation who writes what, because the embedded cluster only stores such policies. */
export function installationGuard(): AdmissionGuard {
  const context = { namespace: PRODUCT_NAMESPACE };
  const objects = [
    ...recordGuards(context),
    ...exceptionStatusGuard(context),
    ...accessGuard(context),
    ...annotationGuard(context),
  ];
  const guest = createManifestsGuest(objects.map(withoutComments));
  const guarded = new Set(
    // Made above.
    (objects as unknown as readonly Guarding[])
      .flatMap(({ spec }) => spec.matchConstraints?.resourceRules ?? [])
      .flatMap(({ apiGroups, resources }) => apiGroups.flatMap((group) => resources.map((one) => `${group}/${one}`))),
  );
  return {
    isFor: ({ group, resource }) => guarded.has(`${group}/${resource}`),
    denial: (requestJson) => {
      const { allowed, message = '', code = 422 } = guest.answer(requestJson);
      return allowed ? undefined : { code, message };
    },
  };
}
