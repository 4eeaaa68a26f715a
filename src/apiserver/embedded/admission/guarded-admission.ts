import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { AdmissionChain, AdmissionAttributes, UserInfo } from '../request/request.ts';
import { reviewedRequest } from './admission-review.ts';
import { attributesOf, kindOf, resourceOf } from './attributes.ts';

/** A check of writes within this process, where API servers evaluate ValidatingAdmissionPolicies. */
export interface AdmissionGuard {
  /** Whether writes of a resource are checked. */
  isFor(type: { readonly group: string; readonly resource: string }): boolean;
  /** @param requestJson the request of an AdmissionReview @returns undefined when the request is allowed */
  denial(requestJson: Buffer): AdmissionDenial | undefined;
}

interface AdmissionDenial {
  readonly code: number;
  readonly message: string;
}

/** The API server's own user. It deletes the objects of a deleted CustomResourceDefinition, in Kubernetes without admission. */
export const API_SERVER: UserInfo = {
  username: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
};

/** Webhooks behind a guard, which no webhook configuration and no right bypasses. */
export class GuardedAdmission implements AdmissionChain {
  readonly #guard: AdmissionGuard;
  readonly #webhooks: AdmissionChain;

  constructor(guard: AdmissionGuard, webhooks: AdmissionChain) {
    this.#guard = guard;
    this.#webhooks = webhooks;
  }

  mutate(...args: Parameters<AdmissionChain['mutate']>): Promise<KubernetesObject | null> {
    return this.#webhooks.mutate(...args);
  }

  async validate(...args: Parameters<AdmissionChain['validate']>): Promise<void> {
    this.#check(args[0]);
    await this.#webhooks.validate(...args);
  }

  /** @throws ApiError */
  #check(request: AdmissionAttributes): void {
    const { definition, user, object, oldObject } = request;
    if (!this.#guard.isFor(definition) || user === API_SERVER) {
      return;
    }
    const called = { kind: kindOf(definition), resource: resourceOf(definition) };
    const json = JSON.stringify(reviewedRequest(attributesOf(request), called, { object, oldObject }));
    const denial = this.#guard.denial(Buffer.from(json));
    if (denial !== undefined) {
      throw new ApiError(denial.code, 'Invalid', denial.message);
    }
  }
}
