import type { KubernetesObject } from '../../../resources/index.ts';
import type { AdmissionRequest } from '../request.ts';
import type { Webhook } from './webhook.ts';

/** What mutating webhooks have made of an object, and whom of them to ask again because of it. */
export class MutationRound {
  readonly request: AdmissionRequest;
  object: KubernetesObject | null;
  hasChanged = false;
  #isSecond = false;
  /** Were asked, and want to be asked again when another changes the object after them. */
  readonly #waiting = new Set<string>();
  readonly #again = new Set<string>();

  constructor(request: AdmissionRequest) {
    this.request = request;
    this.object = request.object;
  }

  mayCall({ id }: Webhook): boolean {
    return !this.#isSecond || this.#again.has(id);
  }

  change(object: KubernetesObject): void {
    this.object = object;
    this.hasChanged = true;
    for (const id of this.#waiting) {
      this.#again.add(id);
    }
    this.#waiting.clear();
  }

  called({ id, isReinvocable }: Webhook): void {
    if (isReinvocable) {
      this.#waiting.add(id);
    }
  }

  again(): void {
    this.#isSecond = true;
  }
}
