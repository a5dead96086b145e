/** The contract of stores. Each store's own test passes its name and a function that opens an empty one. */
import { describe } from 'vitest';
import { describeAttachments } from './store/attachments.js';
import { describeBounces } from './store/bounces.js';
import { describeCalls } from './store/calls.js';
import { describeCampaignBatches, describeCampaigns } from './store/campaigns.js';
import { describeCompositions } from './store/compositions.js';
import { describeDeliveries } from './store/deliveries.js';
import { describeErasures } from './store/erasures.js';
import { describeFigures } from './store/figures.js';
import type { OpenEmpty } from './store/fixture.js';
import { describeImports } from './store/imports.js';
import { describeLimits } from './store/limits.js';
import { describeLists } from './store/lists.js';
import { describeMessageActions } from './store/message-actions.js';
import { describeMessagePages } from './store/message-pages.js';
import { describeQueue, describeQueuePauses } from './store/queue.js';
import { describeSubmissions } from './store/submissions.js';
import { describeSubscribers } from './store/subscribers.js';
import { describeSubscriptions } from './store/subscriptions.js';
import { describeSuppressions } from './store/suppressions.js';
import { describeTokens } from './store/tokens.js';

const parts = [
	...[describeAttachments, describeBounces, describeCalls, describeCampaignBatches, describeCampaigns],
	...[describeCompositions, describeDeliveries, describeErasures, describeFigures, describeImports],
	...[describeLimits, describeLists, describeMessageActions, describeMessagePages, describeQueue],
	...[describeQueuePauses, describeSubmissions, describeSubscribers, describeSubscriptions],
	...[describeSuppressions, describeTokens],
];

export function storeSuite(name: string, open: OpenEmpty): void {
	describe(`a store on ${name}`, () => {
		for (const part of parts) part(open);
	});
}
