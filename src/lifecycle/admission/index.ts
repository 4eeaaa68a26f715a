// The rules for our own kinds without the webhook that applies them. Not exported by lifecycle/index.ts, so that commands check
// policies without loading controllers.
export { OwnKindsRules } from './own-kinds-rules.ts';
