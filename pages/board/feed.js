// The feed: what changes while a position is on the board. It draws nothing; it hands its data to the board,
// so that a poll sends a few numbers and not the whole position.

export default function feed(component) {
  [window.dojoFeed] = component.data;
  window.dispatchEvent(new Event("dojo:feed"));
}
