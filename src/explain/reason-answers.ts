// What each reason in the status of an admission policy means, and what to do about it. docs/lifecycle.md has the reasons.
import type { PolicyReason } from '../evaluation/index.ts';
import type { KEPT_REASONS, REASONS } from '../lifecycle/index.ts';
import type { CHECKING, ISSUE_REASONS } from '../resources/index.ts';

type ValueOf<T> = T[keyof T];

/** Reasons of conditions that are not reasons of a phase as well. */
type ConditionReason =
  | 'NotChecked'
  | 'NoWarnings'
  | 'Served'
  | 'Valid'
  | 'NotTried'
  | typeof CHECKING
  | ValueOf<typeof KEPT_REASONS>;

export type AdmissionReason = ValueOf<typeof REASONS> | PolicyReason | ValueOf<typeof ISSUE_REASONS> | ConditionReason;

export interface ReasonAnswer {
  /** One sentence. */
  readonly meaning: string;
  /** One sentence; absent where nothing has to be done. */
  readonly toDo?: string;
  /** The command for it: its name, without the object, which follows. */
  readonly command?: PolicyCommand;
}

export type PolicyCommand = 'break-glass rearm' | 'rollout pin' | 'rollout refresh' | 'rollout undo' | 'rollout unpin';

const fine = (meaning: string): ReasonAnswer => ({ meaning });
const act = (meaning: string, toDo: string, command?: PolicyCommand): ReasonAnswer => ({
  meaning,
  toDo,
  ...(command === undefined ? {} : { command }),
});

const WAIT = 'Wait: it passes by itself.';
/** What to do about a reason that has no answer of its own, such as one of a newer version. */
export const CORRECT = 'Correct the policy and apply it again.';
const SOURCE = 'Make the source of the module work again; it is tried again by itself. To try it at once';
const COPIES =
  'Run at least two controllers, and two replicas of the PolicyServer, with room for its modules (docs/policy-servers.md#copies-of-modules).';

/** An answer for each documented reason: a missing one is a type error. */
const REASON_ANSWERS: Readonly<Record<AdmissionReason, ReasonAnswer>> = {
  Serving: fine('The desired revision serves.'),
  ServingFromCache: fine('The declared version serves from the module cache, because its source could not be reached.'),
  ServingFromRecord: act('What served before the restart serves, until the cluster can be read.', WAIT),
  Loading: act('The version is being fetched, compiled and checked.', WAIT),
  PoliciesFileUnusable: act('The policies file cannot be used; the policies of before serve.', 'Correct the file.'),
  RevisionFailed: act('No revision of the policy serves, and its newest one failed.', CORRECT),
  Pinned: act('A pin holds the revision that serves.', 'To roll the newest spec out, end the pin', 'rollout unpin'),
  Validating: act('One replica fetches and checks the new revision.', WAIT),
  Staging: act('Replicas load the revision beside the one that serves.', WAIT),
  Switching: act('Replicas switch to the revision, or its webhook is being written.', WAIT),
  ReplicasStarting: act('A replica that has just started loads the revision that serves.', WAIT),
  ControllerStarting: act('The controller has just started, and has not heard from the replicas yet.', WAIT),
  PolicyServerNotFound: act(
    'The PolicyServer that the policy names does not exist.',
    'Create that PolicyServer, or write the policy for another one.',
  ),
  NoReplicas: act('The PolicyServer has no replica.', 'Raise spec.replicas of the PolicyServer, and look at its pods.'),
  ReplicaUnreachable: act(
    'A replica does not answer the controller.',
    'Look at the pods of the PolicyServer, and at the network between them and the controller.',
  ),
  ReplicaFailed: act('A replica could not load the revision, and gave no reason.', 'Look at the log of that replica.'),
  ProgressDeadlineExceeded: act(
    'Not all replicas had loaded the revision at the deadline.',
    'Look at the replicas that the message names; to try it again as it is',
    'rollout refresh',
  ),
  PinNotFound: act('The pinned revision does not exist any more.', 'End the pin', 'rollout unpin'),
  WebhookRefused: act('The API server refuses the webhook of the policy.', CORRECT),
  SchemaReplaced: act(
    'Another product replaced the schema of the policy kinds, which dropped the parameters of the policy, or let its PolicyServer change.',
    'Install the kinds of Portcullis again, then apply the policy again, with the PolicyServer that it had.',
  ),
  ReconcileFailed: act(
    'The controller could not write an object. It tries again.',
    'Mend what the API server says in the message, such as a missing right of the controller.',
  ),
  Contested: act(
    'Another client repeatedly changes a webhook configuration.',
    'Find that client in metadata.managedFields of the configuration, and stop it.',
  ),
  Inherited: fine('Only how the policy is enforced differs from the revision that serves.'),
  Superseded: fine('A newer spec came before the revision served.'),
  Replaced: fine('Another revision serves in its place.'),
  DegradedRejected: act('The newest revision failed, and the controller rejects requests then.', CORRECT),
  DegradedIgnored: act('The newest revision failed, and the controller ignores the policy then.', CORRECT),
  Disarmed: act('An annotation ends the enforcement of the policy.', 'Arm it again', 'break-glass rearm'),
  NotServedYet: act('No revision of the policy has served so far.', 'Mend what keeps the first revision from serving.'),
  FailurePolicy: act(
    'Nothing serves, and the failurePolicy answers requests.',
    'Mend what keeps the revision from serving.',
  ),
  NotEvaluated: act(
    'No replica evaluates the policy, and requests are admitted without it.',
    'Mend what keeps the revision from serving.',
  ),
  AnswersDiffer: act('Replicas answer requests differently.', 'Mend the replicas that the message names.'),
  AnswersUnknown: act(
    'A replica does not say how it answers requests.',
    'Wait until it has started; a replica of an earlier version has to be replaced.',
  ),
  Uninstalled: act(
    'Portcullis was uninstalled: this is the last status, and requests are admitted without the policy.',
    'Install Portcullis again, or delete the policy.',
  ),
  InvalidDefinition: act('The policy has a value that no policy server can use.', CORRECT),
  FetchFailed: act("The module's source could not be reached.", SOURCE, 'rollout refresh'),
  Unauthorized: act(
    "The module's source needs credentials, or refuses those that it got.",
    'Correct the credentials of the PolicyServer (spec.imagePullSecret); to try it at once',
    'rollout refresh',
  ),
  AccessDenied: act(
    'The credentials may not read the module.',
    'Let the account of the PolicyServer read it at its source; to try it at once',
    'rollout refresh',
  ),
  ModuleNotFound: act("The module's source has no such module.", 'Correct spec.module, or publish the module there.'),
  RateLimited: act("The module's source limits the rate of requests.", 'Wait, or use credentials or a mirror.'),
  SourceFailed: act("The module's source answered with an error of its own.", SOURCE, 'rollout refresh'),
  InvalidManifest: act(
    "The manifest of the module's artifact is malformed, or the host is no registry.",
    'Correct spec.module, or publish the artifact again.',
  ),
  UnsupportedMediaType: act('The artifact is not exactly one WebAssembly module.', 'Correct spec.module.'),
  SizeMismatch: act('The module has another size than its manifest says.', 'Publish the artifact again.'),
  DigestMismatch: act(
    'The module does not have the digest that the policy, or its revision, names.',
    'Name the digest that is right, or publish the module again.',
  ),
  SignatureMissing: act('The module has no signature, and the PolicyServer requires one.', 'Sign the module.'),
  SignatureInvalid: act(
    'The signatures of the module do not satisfy the verification of the PolicyServer.',
    'Have the module signed as spec.verificationConfig of the PolicyServer asks, or correct that.',
  ),
  TrustRootUnavailable: act(
    'A keyless signature is required, and the PolicyServer has no trust root.',
    'Set spec.sigstoreTrustConfig of the PolicyServer.',
  ),
  NotVerifiable: act(
    'The PolicyServer runs signed modules only, and the module is not from a registry.',
    'Publish the module in a registry, signed.',
  ),
  InvalidModule: act('The module is not WebAssembly of a supported kind.', 'Correct spec.module, or build it again.'),
  UnsupportedVersion: act(
    'The module needs a newer version of the policy interface.',
    'Use an earlier version of the module, or a newer Portcullis.',
  ),
  MemoryExceeded: act(
    'The policies would hold more memory than they may.',
    'Raise limits.memory of the PolicyServer, or remove policies (docs/server.md#memory-of-policies).',
  ),
  Quarantined: act(
    'The policy server ended while it loaded this module or these settings.',
    'Use another version of the module; to try it again as it is',
    'rollout refresh',
  ),
  CapabilityNotGranted: act(
    'The policy needs host capabilities that its PolicyServer does not grant.',
    'Name them in spec.namespacedPoliciesCapabilities of the PolicyServer, or use another policy.',
  ),
  InvalidSettings: act('The policy refused its settings.', 'Correct spec.settings and apply the policy again.'),
  SettingsCheckFailed: act(
    'The policy failed while its settings were checked.',
    'Correct spec.settings or the module.',
  ),
  KindNotServed: act(
    'The cluster does not serve a kind that the policy reads.',
    'Install the definition of the kind, or correct spec.contextAwareResources.',
  ),
  KindNotReadable: act(
    'The policy server may not read a kind that the policy declares.',
    'Let the controller grant it (docs/policy-servers.md#context-aware-policies).',
  ),
  InvalidParameters: act(
    'Parameters of namespaces are invalid: their requests are, or would be, refused.',
    'Correct the parameters of the namespaces that the message names; it is tried again by itself.',
  ),
  ActivationFailed: act('A worker of a replica could not activate the revision.', 'Look at the log of that replica.'),
  CannotMatch: act('A rule names what Kubernetes does not have: it matches no request.', 'Correct the rule.'),
  CannotSucceed: act('An expression fails for every object, or is never true.', 'Correct the expression.'),
  NotServed: act(
    'The cluster does not serve what a rule matches: it matches no request so far.',
    'Install the definition of the kind, or correct the rule.',
  ),
  TypeWarnings: act('An expression does not fit the schema of a kind.', 'Correct the expression.'),
  MayReject: act('A module needs what the policy does not grant.', 'Grant it, unless the policy works without it.'),
  InvalidAnnotation: act('An annotation of the policy is ignored.', 'Correct the annotation, or remove it.'),
  NotChecked: act('The expressions could not be compared with the kinds of the cluster.', WAIT),
  NoWarnings: fine('The expressions fit the kinds that the rules match.'),
  Served: fine('The cluster serves what the rules match.'),
  Valid: fine('No invalid parameters are known.'),
  NotTried: act('No replica has tried the parameters with the revision that serves yet.', WAIT),
  Checking: act('The new spec is being compared with the kinds of the cluster.', WAIT),
  DurableCache: fine('The module cache outlives the pods.'),
  Copied: fine('Enough processes have copies of the modules.'),
  OneNode: fine('All copies of the modules are on one node.'),
  TooFewCopies: act('Too few processes have copies of the modules.', COPIES),
  NoRoom: act('Controllers have no room for copies of the modules.', COPIES),
  NotReported: act('No process says that it has the modules.', WAIT),
};

/** The answer for a reason of a status; undefined for one of a newer version. */
export function reasonAnswer(reason: string): ReasonAnswer | undefined {
  const answers: Readonly<Record<string, ReasonAnswer>> = REASON_ANSWERS;
  return Object.hasOwn(answers, reason) ? answers[reason] : undefined;
}

/**
 * What to do about a reason: a sentence, or one that ends with the command for it; undefined where nothing has to be done.
 * @param commandLine the command with the program and the object
 */
export function toDoAbout(reason: string, commandLine: (command: PolicyCommand) => string): string | undefined {
  const { toDo, command } = reasonAnswer(reason) ?? {};
  return toDo === undefined || command === undefined ? toDo : `${toDo}: ${commandLine(command)}`;
}
