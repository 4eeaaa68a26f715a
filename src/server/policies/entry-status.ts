// The phase and the status of a policy, as in `GET /policies`.
import type { PolicyReason } from '../../evaluation/index.ts';
import type { ServedPolicyPhase, ServedPolicyStatus, ServedPolicyVersion } from '../status/served-policy-status.ts';
import {
  desiredOf,
  failureText,
  type LoadedRevision,
  type PhaseChange,
  type RegistryEntry,
  servingOf,
  type Slot,
  targetOf,
  versionName,
} from './registry-entry.ts';

/** Whether every wanted version serves, is staged, or has failed once. */
export function isSettled({ slots, standIn, published, isOnAllWorkers }: RegistryEntry): boolean {
  const isLoading = standIn?.isLoading === true || slots.values().some((slot) => slot.isLoading);
  return !isLoading && (published === undefined || isOnAllWorkers);
}

/** Whether every worker serves the wanted version. */
export function isServed(entry: RegistryEntry): boolean {
  const serves = servingOf(entry);
  return (
    serves !== undefined &&
    targetOf(entry)?.loaded === serves &&
    entry.isOnAllWorkers &&
    entry.activationFailure === undefined
  );
}

/** The phase of a policy, with its reason. */
export function phaseOf(entry: RegistryEntry): PhaseChange {
  const { activationFailure } = entry;
  const serves = servingOf(entry);
  if (activationFailure !== undefined) {
    return phase('Error', 'ActivationFailed', activationFailure.message, activationFailure.nextRetry);
  }
  const desired = desiredOf(entry);
  if (desired === undefined) {
    return phaseWithoutWanted(entry);
  }
  if (desired.failure !== undefined) {
    const { reason } = desired.failure;
    return serves === undefined
      ? phase('Error', reason, failureText(entry, desired), desired.nextRetry)
      : phase('Degraded', reason, desired.failure.message, desired.nextRetry);
  }
  if (desired.loaded !== undefined && serves === desired.loaded && entry.isOnAllWorkers) {
    return desired.sourceError === undefined
      ? phase('Active', 'Serving', 'the declared version serves')
      : phase(
          'Active',
          'ServingFromCache',
          `the module comes from the cache: ${desired.sourceError}`,
          desired.nextRetry,
        );
  }
  if (serves === undefined) {
    return phase('Pending', 'Loading', 'the first version is being loaded');
  }
  return phase('Updating', 'Loading', updateText(entry, desired));
}

function updateText({ standIn, published }: RegistryEntry, desired: Slot): string {
  if (published?.kind === 'serving' && published.loaded === desired.loaded) {
    return 'workers are switching to the declared version';
  }
  if (desired.loaded !== undefined) {
    return 'the declared version is loaded and does not serve yet';
  }
  return published?.kind === 'serving' && published.loaded === standIn?.loaded
    ? 'the version from before the restart serves while the declared version is being loaded'
    : 'a newer version is being loaded';
}

/** The phase of a policy without a wanted version, or before the source was read. */
function phaseWithoutWanted(entry: RegistryEntry): PhaseChange {
  const { wanted, standIn, fileError } = entry;
  const serves = servingOf(entry);
  if (wanted?.failed !== undefined) {
    return phase('Error', 'RevisionFailed', wanted.failed.message);
  }
  if (fileError !== undefined) {
    const failure = standIn?.failure?.message;
    const message =
      failure === undefined
        ? `the version from before the restart is used: ${fileError}`
        : `${fileError}; and the version from before the restart cannot serve: ${failure}`;
    const name = serves !== undefined ? 'Degraded' : failure === undefined ? 'Pending' : 'Error';
    return phase(name, 'PoliciesFileUnusable', message);
  }
  if (serves !== undefined) {
    const message = 'the version from before the restart serves until the cluster has been read';
    return phase('Updating', 'ServingFromRecord', message);
  }
  return standIn?.failure === undefined
    ? phase('Pending', 'Loading', 'no revision to serve yet')
    : phase('Error', standIn.failure.reason, standIn.failure.message, standIn.nextRetry);
}

function phase(name: ServedPolicyPhase, reason: PolicyReason, message: string, nextRetry?: Date): PhaseChange {
  return { phase: name, reason, message, nextRetry };
}

/** The status of a policy. */
export function statusOf(entry: RegistryEntry): ServedPolicyStatus {
  const serves = servingOf(entry);
  const desired = desiredOf(entry);
  const definition = (desired?.declared ?? serves)?.definition;
  const { nextRetry, ...facts } = phaseOf(entry);
  return {
    id: entry.id,
    kind: definition?.kind ?? 'unknown',
    mode: definition?.mode ?? 'unknown',
    ...facts,
    since: entry.since.toISOString(),
    desired: desired === undefined ? null : versionOf(desired),
    serving: serves === undefined ? null : { ...versionOfLoaded(serves), since: serves.since },
    attempts: desired?.attempts ?? 0,
    nextRetry: nextRetry?.toISOString() ?? null,
  };
}

/** Null for an invalid entry of a policies file. */
function versionOf({ declared, loaded, revision, fetched }: Slot): ServedPolicyVersion | null {
  if (loaded !== undefined) {
    return versionOfLoaded(loaded);
  }
  if (declared === undefined && revision === undefined) {
    return null;
  }
  const isFetched = declared !== undefined && Object.keys(fetched).length > 0;
  return {
    version: isFetched ? versionName(declared, fetched) : null,
    ...(revision === undefined ? {} : { revision: revision.number }),
    settingsHash: declared?.settingsHash ?? '',
    modules: fetched,
  };
}

function versionOfLoaded({ version, revision, settingsHash, digests }: LoadedRevision): ServedPolicyVersion {
  return {
    version,
    ...(revision === undefined ? {} : { revision: revision.number }),
    settingsHash,
    modules: digests,
  };
}
