/** What Streamlit calls, where each place of the page has one `View`. */
function mounting(View) {
  const views = new WeakMap();
  return (component) => {
    const parent = component.parentElement;
    if (!views.has(parent)) views.set(parent, new View(parent));
    const view = views.get(parent);
    view.update({ ...component, data: component.data[0] });
    return () => {
      view.close();
      views.delete(parent);
    };
  };
}
