import { generatedName, userNameOf } from './admission-review.ts';
import type { AdmissionFacts, GroupVersionKind, Requester, Review, ReviewTarget } from './admission-review.ts';
import { isJsonObject } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';
import type { ResourceId } from '../resources/index.ts';

/**
 * A request for an existing object, not sent by an API server. Fields are those of AdmissionRequest
 * (`admission.k8s.io/v1`).
 */
export interface ObjectRequest {
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: ResourceId;
  readonly requestKind?: GroupVersionKind;
  readonly requestResource?: ResourceId;
  readonly name: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly userInfo: JsonObject;
  readonly object?: JsonObject;
  readonly oldObject?: JsonObject;
  /** Default: false. */
  readonly dryRun?: boolean;
  readonly options?: JsonObject;
}

/** A review of existing objects. JSON text is written only for guests that read it. */
export class ObjectReview implements Review {
  readonly uid: string;
  readonly admission: AdmissionFacts;
  readonly target: ReviewTarget;
  readonly #request: ObjectRequest;
  #requestJson: Buffer | undefined;

  constructor(request: ObjectRequest) {
    const { uid, kind, resource, operation, namespace } = request;
    this.uid = uid;
    this.admission = { kind, operation, ...(namespace === undefined ? {} : { namespace }) };
    this.target = {
      operation,
      resource,
      subresource: '',
      requestResource: resource,
      requestSubresource: '',
      namespace: namespace ?? '',
    };
    this.#request = request;
  }

  get requestJson(): Buffer {
    this.#requestJson ??= Buffer.from(JSON.stringify(this.#request));
    return this.#requestJson;
  }

  get object(): JsonValue | undefined {
    return this.#request.object;
  }

  get oldObject(): JsonObject | undefined {
    return this.#request.oldObject;
  }

  objectJson(field: 'object' | 'oldObject'): string | undefined {
    const object = this.#request[field];
    return isJsonObject(object) ? JSON.stringify(object) : undefined;
  }

  requester(): Requester {
    const { name, userInfo, object, dryRun = false } = this.#request;
    return { name: name || generatedName(object), user: userNameOf(userInfo), isDryRun: dryRun };
  }

  userInfo(): JsonObject {
    return this.#request.userInfo;
  }

  factsJson(): string {
    const { object: _object, oldObject: _oldObject, ...facts } = this.#request;
    return JSON.stringify(facts);
  }

  withObject(object: JsonObject): Review {
    return new ObjectReview({ ...this.#request, object });
  }
}
