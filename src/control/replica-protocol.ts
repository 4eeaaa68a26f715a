// What a controller and a replica say to each other on the replica's control port: HTTPS with certificates on both sides.
// The controller calls: it finds replicas by their PolicyServerReplica objects.
//
//   GET  /stream            one line of JSON for each {@link ReplicaMessage}, for as long as both live
//   POST /prevalidate       {@link PrevalidationRequest} -> {@link PrevalidationResult}
//   GET  /modules/{digest}  the bytes of a module that the replica has; 404 when it has not. Also for other replicas.
import type { AdmissionPolicySpec } from '../resources/index.ts';
import type { PolicyReason } from '../evaluation/index.ts';

/** The name that certificates of control ports have, whatever address they are called by. */
export const CONTROL_NAME = 'control.portcullis.dev';
/** The version of this protocol; a controller leaves replicas of another one alone, and says so. */
export const CONTROL_PROTOCOL = 1;
/** A replica that has nothing to say says so after this time. Milliseconds. */
export const ALIVE_INTERVAL_MS = 200;
/** A replica that said nothing for this long is lost: three intervals, and a pause of a busy machine. Milliseconds. */
export const SILENCE_LIMIT_MS = 800;

/**
 * Longest line of a stream: reports of more are told in parts. Some 500 reports of revisions with which all is well. Bytes.
 */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Longest message of a report; longer ones are cut. What people read of one failure. Characters. */
export const MAX_REPORT_TEXT = 4096;

/** What a replica is doing with a revision. */
export type ReplicaRevisionState =
  /** It is being fetched, compiled and checked. */
  | 'Loading'
  /** It is loaded beside the one that serves. */
  | 'Staged'
  /** Requests are answered by it. */
  | 'Serving'
  /** It could not be loaded; tried again when there is a `nextRetry`. */
  | 'Failed';

/** What a replica says of one revision. */
export interface RevisionReport {
  /** `metadata.name` of the PolicyRevision. */
  readonly name: string;
  /** `metadata.uid` of the PolicyRevision: one of the same name may have been another. */
  readonly uid: string;
  /** The id of the policy. */
  readonly policy: string;
  readonly revision: number;
  readonly state: ReplicaRevisionState;
  /** `status.order` of the PolicyRevision, where it serves: as the replica had read it when it changed over to it. */
  readonly order?: number;
  /** Set when it failed. */
  readonly reason?: PolicyReason;
  readonly message?: string;
  /** ISO 8601. */
  readonly nextRetry?: string;
}

export type ReplicaMessage =
  /** First of all. */
  | {
      readonly type: 'hello';
      readonly protocol: number;
      /** `metadata.name` of its PolicyServerReplica. */
      readonly replica: string;
      /** Another one for every start of the process. */
      readonly instance: string;
      readonly version: string;
    }
  /**
   * What differs from before. With `isComplete` it is everything: the first report of a stream is, once the replica has read
   * the revisions of its cluster, and has as many parts as it takes, the last of which says so.
   */
  | {
      readonly type: 'report';
      readonly revisions: readonly RevisionReport[];
      /** Names of PolicyRevisions that it has nothing of any more. */
      readonly gone: readonly string[];
      readonly isComplete: boolean;
    }
  | { readonly type: 'alive' };

/** A policy whose module is to be fetched, pinned, compiled, and asked about its settings, without serving it. */
export interface PrevalidationRequest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: AdmissionPolicySpec;
}

/** A module as it was found. */
export interface PinnedModule {
  /** The name of the member of a group; that of the policy where there is but one. */
  readonly name: string;
  /** The reference, as the policy writes it. */
  readonly module: string;
  /** `sha256:…`, or the version of a builtin module. */
  readonly digest: string;
}

export type PrevalidationResult =
  | { readonly ok: true; readonly modules: readonly PinnedModule[] }
  | {
      readonly ok: false;
      readonly reason: PolicyReason;
      readonly message: string;
      /** Whether trying the same again may end differently. */
      readonly isTransient: boolean;
    };
