// Who counts as the creator of an object that a policy is about to create, or to delete and create again.
import type { ConfigurationPolicy, RelatedObject } from '../../../resources/index.ts';
import { type ObjectPlan, objectEntry, relatedKey, type ObjectTemplatePlan } from '../../configuration/index.ts';
import { creatorOf } from './created-objects.ts';
import { GOVERNANCE_FIELD_MANAGER } from './field-manager.ts';

export interface ObjectCreationsOptions {
  readonly policy: ConfigurationPolicy;
  /** All plans of the evaluation. */
  readonly plans: readonly ObjectTemplatePlan[];
  /** Writes entries to the status of the policy. */
  readonly record: (entries: readonly RelatedObject[]) => Promise<void>;
}

/** How an object is created. */
export interface Creation {
  readonly fieldManager: string;
  readonly createdByPolicy: boolean;
}

/**
 * An object that was there before the policy stays the user's own when the policy recreates it. The status says so before the
 * object is deleted: a controller that starts in between finds no object, and would take the next one for the policy's own.
 */
export class ObjectCreations {
  readonly #options: ObjectCreationsOptions;
  readonly #known: ReadonlyMap<string, RelatedObject>;
  #isRecorded = false;

  constructor(options: ObjectCreationsOptions) {
    this.#options = options;
    const { relatedObjects = [] } = options.policy.status ?? {};
    this.#known = new Map(relatedObjects.map((entry) => [relatedKey(entry), entry]));
  }

  /** How the object of a plan is to be created. Called before it is deleted. @throws ClusterError */
  async of(plan: ObjectPlan): Promise<Creation> {
    if (this.#isOwn(plan)) {
      return { fieldManager: creatorOf(this.#options.policy), createdByPolicy: true };
    }
    if (plan.live !== undefined) {
      await this.#record();
    }
    return { fieldManager: GOVERNANCE_FIELD_MANAGER, createdByPolicy: false };
  }

  #isOwn(plan: ObjectPlan): boolean {
    const known = this.#knownOf(plan)?.properties;
    return plan.live === undefined
      ? known?.recreating !== true
      : known?.createdByPolicy === true && known.uid === plan.live.metadata.uid;
  }

  /** Records all objects at once that the evaluation may recreate. Its own status replaces the entries. */
  async #record(): Promise<void> {
    if (this.#isRecorded) {
      return;
    }
    const entries = this.#options.plans.flatMap(({ objects }) => objects.flatMap((plan) => this.#recreation(plan)));
    await this.#options.record(entries);
    this.#isRecorded = true;
  }

  #recreation(plan: ObjectPlan): readonly RelatedObject[] {
    const { live, settings, dryRun } = plan;
    const known = this.#knownOf(plan);
    const isOwn = known?.properties?.createdByPolicy === true && known.properties.uid === live?.metadata.uid;
    if (
      live === undefined ||
      dryRun === undefined ||
      !settings.isEnforced ||
      settings.recreateOption === 'None' ||
      isOwn
    ) {
      return [];
    }
    const { uid = '' } = live.metadata;
    return [{ ...(known ?? objectEntry(plan)), properties: { createdByPolicy: false, uid, recreating: true } }];
  }

  #knownOf(plan: ObjectPlan): RelatedObject | undefined {
    return this.#known.get(relatedKey(objectEntry(plan)));
  }
}
