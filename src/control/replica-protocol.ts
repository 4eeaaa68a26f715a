// The protocol of a replica's control port: HTTPS with certificates on both sides. Controllers find replicas by their
// PolicyServerReplica objects and connect to them.
//
//   GET  /stream            one line of JSON for each {@link ReplicaMessage}, until the connection closes
//   POST /prevalidate       {@link PrevalidationRequest} -> {@link PrevalidationResult}
//   GET  /modules/{digest}  the bytes of a module in the replica's cache, or 404; also for other replicas
import type { AdmissionPolicySpec, MonitoredRequest } from '../resources/index.ts';
import type { PolicyReason } from '../evaluation/index.ts';

/** The name in certificates of control ports, independent of their address. */
export const CONTROL_NAME = 'control.portcullis.dev';
/** Version of the protocol. A controller does not use replicas of another version, and reports them. */
export const CONTROL_PROTOCOL = 1;
/** Heartbeat interval of an idle report stream. Milliseconds. */
export const ALIVE_INTERVAL_MS = 200;
/** A replica without a message for this long is lost: three heartbeats, and a pause of a busy machine. Milliseconds. */
export const SILENCE_LIMIT_MS = 800;

/** Longest line of a stream; longer reports are split. Room for some 500 reports of healthy revisions. Bytes. */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Longest message in a report; longer ones are cut. Enough to read about one failure. Characters. */
export const MAX_REPORT_TEXT = 4096;

/** The state of a revision on a replica. */
export type ReplicaRevisionState =
  /** Being fetched, compiled and checked. */
  | 'Loading'
  /** Loaded beside the serving revision. */
  | 'Staged'
  /** Answers requests. */
  | 'Serving'
  /** Could not be loaded; retried at `nextRetry` if that is set. */
  | 'Failed';

/** What requests of a policy get from a replica, as far as it depends on one revision. */
export const REPLICA_ANSWERS = [
  /** The verdict of the revision. */
  'Verdict',
  /** The revision is not loaded, and its failurePolicy rejects. */
  'Fail',
  /** The revision is not loaded, and its failurePolicy, or monitor mode, admits. */
  'Ignore',
  /** The revision has no part in it. */
  'Nothing',
  /** The replica is starting, and API servers do not send it requests yet. */
  'NotReady',
] as const;

export type ReplicaAnswers = (typeof REPLICA_ANSWERS)[number];

/** A replica's report of one revision. */
export interface RevisionReport {
  /** `metadata.name` of the PolicyRevision. */
  readonly name: string;
  /** `metadata.uid` of the PolicyRevision: its name may have belonged to a deleted one. */
  readonly uid: string;
  /** The id of the policy. */
  readonly policy: string;
  readonly revision: number;
  readonly state: ReplicaRevisionState;
  /** Absent while workers change to the revision, or cannot activate it. */
  readonly answers?: ReplicaAnswers;
  /** `status.order` of a serving PolicyRevision, as read when the replica switched to it. */
  readonly order?: number;
  /** Set when it failed. */
  readonly reason?: PolicyReason;
  readonly message?: string;
  /** ISO 8601. */
  readonly nextRetry?: string;
  /** Whether it is loaded, and a module of it could not be written to the replica's disk. Default: false. */
  readonly isUncached?: boolean;
  /**
   * Set when it failed for parameters: the fingerprint of these now. It is tried again when this is another one than
   * {@link PrevalidationResult} had.
   */
  readonly parameters?: string;
  /** Whether it serves, and its parameters were tried: without {@link refused}, none are invalid. */
  readonly areParametersTried?: boolean;
  /** Set when it serves, and refuses requests of namespaces for their parameters. */
  readonly refused?: RefusedReport;
  /** Set when it serves in monitor mode and would have rejected requests. */
  readonly monitored?: MonitoredReport;
}

/** Refused namespaces in a report; others are counted. */
export const MAX_REFUSED_NAMESPACES = 10;

/** Namespaces whose parameters are invalid for a revision. */
export interface RefusedReport {
  readonly count: number;
  /** Number of namespaces with parameters. */
  readonly tried: number;
  /** In the order of their names. */
  readonly first: readonly { readonly namespace: string; readonly message: string }[];
}

/** The requests that a revision in monitor mode would have rejected on a replica. */
export interface MonitoredReport {
  /** When this count began; another one begins with each start of the process. ISO 8601 with milliseconds. */
  readonly since: string;
  readonly count: number;
  /** The last of them, oldest first. */
  readonly last: readonly MonitoredRequest[];
}

/** Uses of one message; further ones are in the next: a tenth of {@link MAX_MESSAGE_BYTES} is for each hundred. */
export const MAX_USES_IN_MESSAGE = 1_000;

/** The requests that a replica let through by an exception. */
export interface ExceptionUse {
  /** `metadata.uid` of the PolicyException. */
  readonly uid: string;
  /** When this count began; another one begins with each start of the process. ISO 8601 with milliseconds, like `last`. */
  readonly since: string;
  readonly count: number;
  /** When the last one was. */
  readonly last: string;
}

export type ReplicaMessage =
  /** The first message of a stream. */
  | {
      readonly type: 'hello';
      readonly protocol: number;
      /** `metadata.name` of its PolicyServerReplica. */
      readonly replica: string;
      /** A random id of the process. */
      readonly instance: string;
      readonly version: string;
    }
  /**
   * Changes of revisions. A stream starts with all revisions, once the replica has read them from the cluster: in one
   * or more reports, the last of which has `isComplete`.
   */
  | {
      readonly type: 'report';
      readonly revisions: readonly RevisionReport[];
      /** Names of PolicyRevisions that the replica has dropped. */
      readonly gone: readonly string[];
      readonly isComplete: boolean;
    }
  /**
   * Uses of exceptions: all that the replica knows once it has sent all reports, then those that changed. A replica that sends none of
   * these does not count.
   */
  | { readonly type: 'exceptions'; readonly uses: readonly ExceptionUse[] }
  | {
      readonly type: 'alive';
      /** By the clock of the replica. ISO 8601 with milliseconds. Absent in earlier versions. */
      readonly time?: string;
    };

/** The reason of a revision that would refuse namespaces for their parameters. */
export const INVALID_PARAMETERS = 'InvalidParameters' satisfies PolicyReason;

/** A policy to pre-validate: its module is fetched, pinned, compiled, and checks its settings, without serving. */
export interface PrevalidationRequest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: AdmissionPolicySpec;
  /** `metadata.uid` of the PolicyRevision that answers requests meanwhile. Absent: none does. */
  readonly serving?: string;
}

/** A module with its resolved digest. */
export interface PinnedModule {
  /** The name of the group member, or of the policy if it is no group. */
  readonly name: string;
  /** The module reference in the policy. */
  readonly module: string;
  /** `sha256:…`, or the version of a builtin module. */
  readonly digest: string;
  /** Of a module from a registry: the digest of its manifest, `sha256:…`. */
  readonly manifest?: string;
  /** The id of the verification that its signatures satisfied, `sha256:…`; absent when none was required. */
  readonly verifiedBy?: string;
}

export type PrevalidationResult =
  | {
      readonly ok: true;
      readonly modules: readonly PinnedModule[];
      /** Why the policy may reject requests although it is valid. */
      readonly warnings?: readonly string[];
    }
  | {
      readonly ok: false;
      readonly reason: PolicyReason;
      readonly message: string;
      /** Whether a retry may succeed. */
      readonly isTransient: boolean;
      /** With the reason {@link INVALID_PARAMETERS}: the fingerprint of the parameters that it was tried with. */
      readonly parameters?: string;
    };
