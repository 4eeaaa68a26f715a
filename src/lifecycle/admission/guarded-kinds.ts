// Kinds of other controllers of this process of which each user may write certain parts only. The webhook for our own kinds asks.
import type { ApiError } from '../../cluster/index.ts';
import type { JsonObject, OwnKind } from '../../resources/index.ts';

export interface GuardedKinds {
  /** The first part of the name of their webhook: a DNS label. */
  readonly name: string;
  readonly kinds: readonly OwnKind[];
  /** Why a write is refused. Other reviews wait meanwhile. */
  refusal(write: GuardedWrite): ApiError | undefined;
}

/** A write of an object or of its status, by another user than the controller. */
export interface GuardedWrite {
  readonly kind: OwnKind;
  readonly name: string;
  readonly username: string;
  /** Whether the status is written, and nothing else. */
  readonly isStatus: boolean;
  readonly object: JsonObject;
  /** Undefined for a new object. */
  readonly oldObject: JsonObject | undefined;
}
