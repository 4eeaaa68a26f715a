export type { VerdictChange } from './change.ts';
export type { RecordedRequest } from './compare-requests.ts';
export { SUBJECTS } from './change-groups.ts';
export type { ChangeGroup, Subject } from './change-groups.ts';
export { isUnfinished, previewCluster, previewObjects } from './preview.ts';
export { SeparateHosts } from './preview-sides.ts';
export type { Preview } from './preview.ts';
