// The entries of a NetworkPolicyStatus that providers write themselves, and what of them counts.
import {
  type Condition,
  findCondition,
  NETWORK_POLICY_STATUS_MANAGER,
  type ProviderEntry,
} from '../resources/index.ts';
import type { Reporter } from './reporters.ts';
import { ACCEPTED, FAILURE, PARTIAL_FAILURE, type StatusFields } from './status-terms.ts';

/** A provider has not reported the newest spec of the policy yet. */
const REPORT_OUTDATED = 'ReportOutdated';
/** A provider has an entry without the condition `Accepted`. */
const REPORT_INCOMPLETE = 'ReportIncomplete';
/** The reason of the catalogue for the same. */
const FEATURE_NOT_SUPPORTED = 'FeatureNotSupported';
/** Nobody who may write the entry says that it runs. */
const REPORTER_UNKNOWN = 'ReporterUnknown';

/** The entries of others. */
export function foreignEntries(status: StatusFields | undefined): readonly ProviderEntry[] {
  return (status?.providers ?? []).filter(({ reporter }) => reporter !== NETWORK_POLICY_STATUS_MANAGER);
}

/**
 * The entries of others, as they count for a generation of the policy. Their names are those that administrators gave: no provider
 * passes for another one.
 * @param reporting the reporters that run, by controllerName
 */
export function countedEntries(
  status: StatusFields | undefined,
  reporting: ReadonlyMap<string, Reporter>,
  generation: number,
): readonly ProviderEntry[] {
  return foreignEntries(status).map(({ name: _name, ...entry }) => {
    const { controllerName } = entry;
    const reporter = reporting.get(controllerName);
    return reporter === undefined
      ? unknownEntry(
          entry,
          REPORTER_UNKNOWN,
          `no NetworkPolicyProvider names a reporter of ${controllerName} that runs`,
        )
      : countedEntry({ ...entry, name: reporter.provider }, generation);
  });
}

/** What is said of another generation does not count, and what contradicts itself is not accepted. */
function countedEntry(entry: ProviderEntry, generation: number): ProviderEntry {
  const accepted = findCondition(entry.conditions, ACCEPTED);
  if (accepted === undefined) {
    return unknownEntry(entry, REPORT_INCOMPLETE, `the entry of ${entry.controllerName} has no condition ${ACCEPTED}`);
  }
  if (accepted.observedGeneration !== generation) {
    const message = `${entry.controllerName} has not reported generation ${generation} of the policy yet`;
    return unknownEntry(entry, REPORT_OUTDATED, message);
  }
  const isOutdated = ({ observedGeneration = generation }: Pick<Condition, 'observedGeneration'>): boolean =>
    observedGeneration !== generation;
  const features = (entry.features ?? []).filter((feature) => !isOutdated(feature));
  const failures = [FAILURE, PARTIAL_FAILURE].flatMap((type) => findCondition(entry.conditions, type) ?? []);
  const failed = failures.filter((condition) => condition.status === 'True' && !isOutdated(condition));
  const unsupported = features.filter(({ status }) => status === 'False');
  // The reason of a feature may be any text, that of a condition may not.
  const [doubt] = [...failed, ...unsupported.map(({ message }) => ({ reason: FEATURE_NOT_SUPPORTED, message }))];
  const isDoubted = accepted.status === 'True' && doubt !== undefined;
  const { reason, message } = isDoubted ? doubt : accepted;
  const counted: Condition = { ...accepted, status: isDoubted ? 'False' : accepted.status, reason, message };
  return { ...entry, features, conditions: [counted, ...failed] };
}

function unknownEntry(entry: ProviderEntry, reason: string, message: string): ProviderEntry {
  const { features: _features, ...others } = entry;
  const { lastTransitionTime = '' } = findCondition(entry.conditions, ACCEPTED) ?? {};
  return { ...others, conditions: [{ type: ACCEPTED, status: 'Unknown', reason, message, lastTransitionTime }] };
}
